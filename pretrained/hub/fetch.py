"""The process that downloads a model: `python -m pretrained.hub.fetch ORG/NAME REVISION CACHE`.

Looks at the repository first and refuses what could not be used: an architecture that the core
does not hold, no safetensors, more bytes than allowed, no room. Speaks to its parent in lines of
JSON behind `hub.MESSAGE`: {"total", "before", "blobs"} once, then {"path"} or {"error"}.
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
    """The download is not made; the message is a sentence for the visitor."""


def choose(sizes: dict[str, int | None]) -> dict[str, int]:
    """The files to fetch out of a repository's files (path -> bytes), with their sizes.

    Raises DownloadRefused when there is no configuration or no safetensors, or a size is not told.
    """
    names = [name for name in SMALL_FILES if name in sizes]
    if checkpoint.CONFIG_FILE not in sizes:
        raise DownloadRefused(
            "The repository holds no config.json, so it is no model for this site."
        )
    if checkpoint.WEIGHTS_FILE in sizes:
        names.append(checkpoint.WEIGHTS_FILE)
    elif checkpoint.INDEX_FILE in sizes:
        names += [checkpoint.INDEX_FILE, *(name for name in sizes if _SHARD.fullmatch(name))]
    else:
        raise DownloadRefused(
            "The repository holds no safetensors weights; pickled ones are not opened."
        )
    chosen: dict[str, int] = {}
    for name in names:
        size = sizes[name]
        if size is None:
            raise DownloadRefused(f"The hub does not tell the size of {name}.")
        if name in SMALL_FILES and size > _MAX_SMALL_BYTES:
            raise DownloadRefused(f"{name} is {size / 1e6:,.0f} MB, which is no file of its kind.")
        chosen[name] = size
    return chosen


def max_bytes() -> int:
    """The most that one download may fetch: ATTENTION_LAB_MAX_DOWNLOAD_GB, by default 8 GB.

    Raises DownloadRefused when the variable's value is not allowed.
    """
    try:
        return settings.MAX_DOWNLOAD.read()
    except ValueError as error:
        raise DownloadRefused(str(error)) from error


def fetch(hub_id: str, revision: str, cache: Path) -> Path:
    """Download a model into a Hugging Face cache folder; its snapshot folder.

    A branch is looked up once: files, sizes and contents are those of that one commit, whatever is
    pushed meanwhile. The cache takes the commit for the branch once the snapshot is complete, so a
    download that is cut short leaves an older snapshot in use.
    Raises DownloadRefused with a sentence, or whatever huggingface_hub raises.
    """
    if not hub_reachable():
        raise DownloadRefused(f"The hub ({endpoint()}) cannot be reached from this machine.")
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download

    # No token: a visitor's request must not reach what only the operator may read.
    api = HfApi(endpoint=endpoint(), token=False)
    info = api.model_info(hub_id, revision=revision, files_metadata=True, timeout=_TIMEOUT_SECONDS)
    commit = info.sha or ""
    if not COMMIT.fullmatch(commit):
        raise DownloadRefused(f"The hub does not tell which commit {revision} is.")
    files = choose({file.rfilename: file.size for file in info.siblings or []})
    total = sum(files.values())
    if total > max_bytes():
        raise DownloadRefused(
            f"The model is {total / 1e9:.1f} GB; downloads are limited to {max_bytes() / 1e9:g} GB."
        )
    repository = cache_repository(hub_id, cache)
    check_room(cache, _missing_bytes(repository / "snapshots" / commit, files))

    common: dict[str, Any] = {"cache_dir": cache, "endpoint": endpoint(), "token": False}
    config = hf_hub_download(hub_id, checkpoint.CONFIG_FILE, revision=commit, **common)
    snapshot = Path(config).parent
    try:
        checkpoint.read_config(snapshot)
    except ValueError as error:
        raise DownloadRefused(str(error)) from error
    blobs = repository / "blobs"
    tell(total=_missing_bytes(snapshot, files), before=folder_bytes(blobs), blobs=str(blobs))
    snapshot_download(hub_id, revision=commit, allow_patterns=sorted(files), **common)
    odd = [name for name, size in files.items() if _size(snapshot / name) != size]
    if odd:
        raise DownloadRefused(
            f"The download is incomplete: {min(odd)} is not as the hub announced it."
        )
    for file in checkpoint.weight_files(snapshot):  # an index may name shards that are not there
        check_weights(file)
    remember(repository, revision, commit)
    return snapshot


def check_room(cache: Path, needed: int) -> None:
    """Raise Refused when the disk of the cache, which need not exist yet, has no such room."""
    place = next(path for path in (cache, *cache.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise DownloadRefused(
            f"The download needs {needed / 1e6:,.1f} MB, but {free / 1e6:,.1f} MB are free on the "
            "disk of the model cache."
        )


def check_weights(file: Path) -> None:
    """Raise Refused for a file of a snapshot that holds no weights, and remove it.

    It has the announced size, so it would stand in the way of every later download.
    """
    try:
        checkpoint.read_header(file)
    except ValueError as error:
        file.resolve().unlink(missing_ok=True)  # in a cache a file is a link to a blob
        file.unlink(missing_ok=True)
        raise DownloadRefused(
            f"What the hub sent as {file.name} is damaged: try it again."
        ) from error


def remember(repository: Path, revision: str, commit: str) -> None:
    """Note the commit of a branch or tag in the file refs/<name>, as huggingface_hub does."""
    if revision == commit:
        return
    ref = repository / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    # renamed into place: another process never reads half a name
    new = ref.with_name(f"{ref.name}.{os.getpid()}.tmp")
    new.write_text(commit, encoding="utf-8")
    new.replace(ref)


def _missing_bytes(snapshot: Path, files: dict[str, int]) -> int:
    return sum(size for name, size in files.items() if _size(snapshot / name) != size)


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


def sentence(error: Exception) -> str:
    """An error of huggingface_hub or of the system as one sentence for the visitor."""
    from huggingface_hub import errors

    known: tuple[tuple[type[Exception], str], ...] = (
        (errors.GatedRepoError, "The model is gated: its owner wants an agreement first."),
        (errors.RepositoryNotFoundError, "The hub has no such public model."),
        (errors.RevisionNotFoundError, "The hub has no such revision of the model."),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE is set, so nothing is downloaded."),
    )
    for kind, text in known:
        if isinstance(error, kind):
            return text
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"The download failed: {type(error).__name__}: {first}"


def tell(**message: Any) -> None:
    """Send one message to the parent process."""
    print(MESSAGE + json.dumps(message), flush=True)


def main(arguments: list[str]) -> int:
    """Fetch what the arguments name and report; the exit status."""
    hub_id, revision, cache = arguments
    try:
        path = fetch(hub_id, revision, Path(cache))
    except DownloadRefused as refusal:
        tell(error=str(refusal))
        return 1
    except Exception as error:  # the last stop: whatever it was, the parent gets a sentence
        tell(error=sentence(error))
        return 1
    tell(path=str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
