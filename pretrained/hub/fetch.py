"""The process that downloads a model: `python -m pretrained.hub.fetch ORG/NAME REVISION CACHE`.

It first checks the repository, and refuses the download if the architecture isn't supported, there
are no safetensors, the files are too large, or there isn't enough disk space. It sends messages to
its parent process as JSON lines with the prefix `downloads.MESSAGE`: {"total", "before", "blobs"}
once, then {"path"} or {"error"}.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from pretrained import checkpoint, settings
from pretrained.hub.downloads import MESSAGE, endpoint, folder_bytes, hub_reachable
from pretrained.sources import COMMIT, cache_repository

SMALL_FILES = frozenset(
    {checkpoint.CONFIG_FILE, "generation_config.json", *checkpoint.TOKENIZER_FILES}
)
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_MAX_SMALL_BYTES = 64_000_000
_TIMEOUT_SECONDS = 10.0


class DownloadRefused(Exception):
    """The download was refused; the message is for the visitor."""


def choose(sizes: dict[str, int | None]) -> dict[str, int]:
    """Select the files to download, with their sizes; sizes: path -> bytes of the repository.

    Raises DownloadRefused if the configuration, the safetensors or a size is missing.
    """
    names = [name for name in SMALL_FILES if name in sizes]
    if checkpoint.CONFIG_FILE not in sizes:
        raise DownloadRefused(
            "The repository has no config.json, so this site can't use it. Choose a GPT-2, BERT or "
            "Llama model."
        )
    if checkpoint.WEIGHTS_FILE in sizes:
        names.append(checkpoint.WEIGHTS_FILE)
    elif checkpoint.INDEX_FILE in sizes:
        names += [checkpoint.INDEX_FILE, *(name for name in sizes if _SHARD.fullmatch(name))]
    else:
        raise DownloadRefused(
            "The repository has no safetensors weights. This site doesn't open pickled weights, "
            "because they can run code."
        )
    chosen: dict[str, int] = {}
    for name in names:
        size = sizes[name]
        if size is None:
            raise DownloadRefused(f"The Hub doesn't report the size of {name}.")
        if name in SMALL_FILES and size > _MAX_SMALL_BYTES:
            raise DownloadRefused(
                f"{name} has {size / 1e6:,.0f} MB, but the limit for this file is "
                f"{_MAX_SMALL_BYTES / 1e6:,.0f} MB."
            )
        chosen[name] = size
    return chosen


def max_bytes() -> int:
    """The size limit of a download: ATTENTION_LAB_MAX_DOWNLOAD_GB, 8 GB by default.

    Raises DownloadRefused if the variable's value is invalid.
    """
    try:
        return settings.MAX_DOWNLOAD.read()
    except ValueError as error:
        raise DownloadRefused(str(error)) from error


def fetch(hub_id: str, revision: str, cache: Path) -> Path:
    """Download a model into a Hugging Face cache folder, and return its snapshot folder.

    A branch is resolved to a commit once, so files, sizes and contents always match, even if
    someone pushes in the meantime. The cache's branch reference is updated only after the snapshot
    is complete, so an older snapshot stays in use if the download is interrupted.
    Raises DownloadRefused with a message, or the errors of huggingface_hub.
    """
    if not hub_reachable():
        raise DownloadRefused(
            f"This machine can't reach the Hub ({endpoint()}). Check its internet connection and "
            "proxy, then try again."
        )
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download

    # No token, so that visitors can't access the operator's private models.
    api = HfApi(endpoint=endpoint(), token=False)
    info = api.model_info(hub_id, revision=revision, files_metadata=True, timeout=_TIMEOUT_SECONDS)
    commit = info.sha or ""
    if not COMMIT.fullmatch(commit):
        raise DownloadRefused(f"The Hub doesn't report the commit of {revision}.")
    files = choose({file.rfilename: file.size for file in info.siblings or []})
    total = sum(files.values())
    if total > max_bytes():
        raise DownloadRefused(
            f"The model has {total / 1e9:.1f} GB, but downloads are limited to "
            f"{max_bytes() / 1e9:g} GB. Choose a smaller model."
        )
    repository = cache_repository(hub_id, cache)
    check_disk_space(cache, _missing_bytes(repository / "snapshots" / commit, files))

    common: dict[str, Any] = {"cache_dir": cache, "endpoint": endpoint(), "token": False}
    config = hf_hub_download(hub_id, checkpoint.CONFIG_FILE, revision=commit, **common)
    snapshot = Path(config).parent
    try:
        checkpoint.read_config(snapshot)
    except ValueError as error:
        raise DownloadRefused(str(error)) from error
    blobs = repository / "blobs"
    send_message(
        total=_missing_bytes(snapshot, files), before=folder_bytes(blobs), blobs=str(blobs)
    )
    snapshot_download(hub_id, revision=commit, allow_patterns=sorted(files), **common)
    odd = [name for name, size in files.items() if _size(snapshot / name) != size]
    if odd:
        raise DownloadRefused(
            f"The download is incomplete: {min(odd)} has the wrong size. Try it again."
        )
    for file in checkpoint.weight_files(snapshot):  # raises if the index names a missing shard
        check_weights(file)
    write_ref(repository, revision, commit)
    return snapshot


def check_disk_space(cache: Path, needed: int) -> None:
    """Raise DownloadRefused if the cache's disk is too full; the cache need not exist yet."""
    place = next(path for path in (cache, *cache.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise DownloadRefused(
            f"The download needs {needed / 1e6:,.1f} MB, but only {free / 1e6:,.1f} MB are free on "
            "the disk of the model cache."
        )


def check_weights(file: Path) -> None:
    """Raise DownloadRefused for a damaged weight file of a snapshot, and delete it.

    If it stayed, later downloads would skip it because its size is correct.
    """
    try:
        checkpoint.read_header(file)
    except ValueError as error:
        file.resolve().unlink(missing_ok=True)  # files in the cache are links to blobs
        file.unlink(missing_ok=True)
        raise DownloadRefused(
            f"The Hub sent a damaged {file.name}. Try the download again."
        ) from error


def write_ref(repository: Path, revision: str, commit: str) -> None:
    """Write the commit of a branch or tag to the file refs/<name>, like huggingface_hub."""
    if revision == commit:
        return
    ref = repository / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    # write and rename, so that other processes never read an incomplete commit
    new = ref.with_name(f"{ref.name}.{os.getpid()}.tmp")
    new.write_text(commit, encoding="utf-8")
    new.replace(ref)


def _missing_bytes(snapshot: Path, files: dict[str, int]) -> int:
    return sum(size for name, size in files.items() if _size(snapshot / name) != size)


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


def error_message(error: Exception) -> str:
    """Turn an error of huggingface_hub or the system into a message for the visitor."""
    from huggingface_hub import errors

    known: tuple[tuple[type[Exception], str], ...] = (
        (
            errors.GatedRepoError,
            "This model is gated: you can only get it after accepting its license. Choose a model "
            "that isn't gated.",
        ),
        (
            errors.RepositoryNotFoundError,
            "The Hub has no public model with this id. Check its spelling.",
        ),
        (errors.RevisionNotFoundError, "The model doesn't have this revision on the Hub."),
        (
            errors.OfflineModeIsEnabled,
            "HF_HUB_OFFLINE is set, so downloads are turned off. Unset it to allow them.",
        ),
    )
    for kind, text in known:
        if isinstance(error, kind):
            return text
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"The download failed: {type(error).__name__}: {first}"


def send_message(**message: Any) -> None:
    """Send one message to the parent process."""
    print(MESSAGE + json.dumps(message), flush=True)


def main(arguments: list[str]) -> int:
    """Download the model, report to the parent process, and return the exit status."""
    hub_id, revision, cache = arguments
    try:
        path = fetch(hub_id, revision, Path(cache))
    except DownloadRefused as refusal:
        send_message(error=str(refusal))
        return 1
    except Exception as error:  # the parent must always get a message
        send_message(error=error_message(error))
        return 1
    send_message(path=str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
