"""The process that downloads a model: `python -m pretrained.fetch ORG/NAME REVISION CACHE`.

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

from pretrained import checkpoint
from pretrained.hub import MESSAGE, endpoint, folder_bytes, hub_reachable

SMALL_FILES = frozenset(
    {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "vocab.json",
        "merges.txt",
        "vocab.txt",
    }
)
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_MAX_SMALL_BYTES = 64_000_000
_TIMEOUT_SECONDS = 10.0


class Refused(Exception):
    """The download is not made; the message is a sentence for the visitor."""


def choose(sizes: dict[str, int | None]) -> dict[str, int]:
    """The files to fetch out of a repository's files (path -> bytes), with their sizes.

    Raises Refused when there is no configuration or no safetensors, or a size is not told.
    """
    names = [name for name in SMALL_FILES if name in sizes]
    if checkpoint.CONFIG_FILE not in sizes:
        raise Refused("The repository holds no config.json, so it is no model for this site.")
    if checkpoint.WEIGHTS_FILE in sizes:
        names.append(checkpoint.WEIGHTS_FILE)
    elif checkpoint.INDEX_FILE in sizes:
        names += [checkpoint.INDEX_FILE, *(name for name in sizes if _SHARD.fullmatch(name))]
    else:
        raise Refused("The repository holds no safetensors weights; pickled ones are not opened.")
    chosen: dict[str, int] = {}
    for name in names:
        size = sizes[name]
        if size is None:
            raise Refused(f"The hub does not tell the size of {name}.")
        if name in SMALL_FILES and size > _MAX_SMALL_BYTES:
            raise Refused(f"{name} is {size / 1e6:,.0f} MB, which is no file of its kind.")
        chosen[name] = size
    return chosen


def max_bytes() -> int:
    """The most that one download may fetch: ATTENTION_LAB_MAX_DOWNLOAD_GB, by default 8 GB.

    Raises Refused when the variable holds no number.
    """
    value = os.environ.get("ATTENTION_LAB_MAX_DOWNLOAD_GB", "").strip() or "8"
    try:
        return int(float(value) * 1e9)
    except (ValueError, OverflowError) as error:
        raise Refused(f"ATTENTION_LAB_MAX_DOWNLOAD_GB is {value!r}, which is no number.") from error


def fetch(hub_id: str, revision: str, cache: Path) -> Path:
    """Download a model into a Hugging Face cache folder; its snapshot folder.

    Raises Refused with a sentence, or whatever huggingface_hub raises.
    """
    if not hub_reachable():
        raise Refused(f"The hub ({endpoint()}) cannot be reached from this machine.")
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download

    # No token: a visitor's request must not reach what only the operator may read.
    api = HfApi(endpoint=endpoint(), token=False)
    info = api.model_info(hub_id, revision=revision, files_metadata=True, timeout=_TIMEOUT_SECONDS)
    files = choose({file.rfilename: file.size for file in info.siblings or []})
    total = sum(files.values())
    if total > max_bytes():
        raise Refused(
            f"The model is {total / 1e9:.1f} GB; downloads are limited to {max_bytes() / 1e9:g} GB."
        )
    common: dict[str, Any] = {"cache_dir": cache, "endpoint": endpoint(), "token": False}
    config = hf_hub_download(hub_id, checkpoint.CONFIG_FILE, revision=revision, **common)
    try:
        checkpoint.read_config(Path(config).parent)
    except ValueError as error:
        raise Refused(str(error)) from error

    snapshot = Path(config).parent
    missing = sum(size for name, size in files.items() if not (snapshot / name).is_file())
    if shutil.disk_usage(cache).free < missing:
        raise Refused(f"There is no room for {missing / 1e9:.1f} GB on this machine's disk.")
    blobs = snapshot.parent.parent / "blobs"
    tell(total=missing, before=folder_bytes(blobs), blobs=str(blobs))
    snapshot = Path(
        snapshot_download(hub_id, revision=revision, allow_patterns=sorted(files), **common)
    )
    checkpoint.weight_files(snapshot)  # an index may name shards that the repository lacks
    return snapshot


def sentence(error: Exception) -> str:
    """One sentence for what huggingface_hub or the system raised."""
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
    """One message to the parent."""
    print(MESSAGE + json.dumps(message), flush=True)


def main(arguments: list[str]) -> int:
    """Fetch what the arguments name and report; the exit status."""
    hub_id, revision, cache = arguments
    try:
        path = fetch(hub_id, revision, Path(cache))
    except Refused as refusal:
        tell(error=str(refusal))
        return 1
    except Exception as error:  # the last stop: whatever it was, the parent gets a sentence
        tell(error=sentence(error))
        return 1
    tell(path=str(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
