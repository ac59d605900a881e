"""Finds a model's weights on this machine.

They may be in a local folder, the Hugging Face cache, an installed package, or this project.

This module never uses the network, opens a weight file or runs a package's code.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pretrained import checkpoint, settings
from pretrained.model_files import fingerprint, last_write, read_bytes
from pretrained.names import check_hub_id, check_name
from pretrained.specs import ModelSpec, find_spec

SourceKind = Literal["folder", "hub cache", "bundled", "trained here"]

# The models that this project has trained itself (`training/`), one folder each.
TRAINED_HERE = Path(__file__).parent / "checkpoints"

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class WeightsSource:
    """The location of a model's weights: its kind, the folder, and the version of the files.

    The folder contains config.json and safetensors, or a GGUF file for the bundled SmolLM2. The
    version is the fingerprint of the folder's files when this object was created, so a folder whose
    files have changed is a different source.
    """

    kind: SourceKind
    path: Path
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", fingerprint(self.path))


CLOCK_TICK = 0.05  # seconds; file systems round times to at most 10 ms


class FilesChanged(ValueError):
    """The files of a model have changed since they were found."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"The files in the model folder {folder.name} changed on disk after the model was "
            "opened. Reload the page to open it again."
        )


class UnusableModel(ValueError):
    """A model on this machine can't be loaded; its files may just have changed."""


@contextmanager
def unchanged(source: WeightsSource) -> Iterator[None]:
    """Read files of a source inside a `with` block that checks that they don't change.

    Waits up to `CLOCK_TICK` seconds if a file was just written, because a second write within the
    resolution of the file system's clock wouldn't change its time.
    Raises FilesChanged if the files changed before or while they were read.
    """
    age = time.time() - last_write(source.path)
    if 0 <= age < CLOCK_TICK:
        time.sleep(CLOCK_TICK - age)
    _check_unchanged(source)
    try:
        yield
    except ValueError:
        _check_unchanged(source)  # a partly written file looks damaged
        raise
    _check_unchanged(source)


def _check_unchanged(source: WeightsSource) -> None:
    if fingerprint(source.path) != source.version:
        raise FilesChanged(source.path)


def models_root() -> Path | None:
    """The folder ATTENTION_LAB_MODELS; None if it's unset or doesn't exist."""
    try:
        return settings.MODELS.read()
    except ValueError:  # it was removed after the site started
        return None


def local_folders(name: str) -> list[Path]:
    """Existing folders in ATTENTION_LAB_MODELS for a name: by name, then by Hub id.

    Raises ValueError for an invalid name, or for a link that leaves that folder.
    """
    check_name(name)
    root = models_root()
    if root is None:
        return []
    spec = find_spec(name)
    names = [spec.name, spec.hub_id] if spec else [name]
    folders = []
    for candidate in dict.fromkeys(n.replace("/", "--") for n in names):
        folder = root / candidate
        if os.path.isdir(folder):
            if not folder.resolve().is_relative_to(root.resolve()):
                raise ValueError(
                    f"The model folder {candidate} is a link to a location outside the models "
                    "folder. Copy it into the models folder instead."
                )
            folders.append(folder)
    return folders


def folder_at(model: str | os.PathLike[str]) -> Path | None:
    """The absolute path of a folder if `model` is a path; None if it's the name of a model.

    A path object, an absolute path, and strings such as "./x", "../x" or "~/x" are paths. Any other
    string with a "/" is a path if that folder has a config.json. Never pass a visitor's text to
    this function; pass it to `find`, which only accepts names.
    """
    if isinstance(model, os.PathLike):
        return Path(model).absolute()
    if not isinstance(model, str):  # `check_name` raises an error for it
        return None
    path = os.path.expanduser(model)
    is_path = os.path.isabs(path) or model.split("/")[0] in (".", "..")
    # os.path returns False for unreadable and for invalid paths
    holds_model = "/" in model and os.path.isfile(os.path.join(path, checkpoint.CONFIG_FILE))
    return Path(path).absolute() if is_path or holds_model else None


def find(name: str) -> WeightsSource | None:
    """The location of the weights of `name` on this machine, or None.

    name: a catalog name, a Hub id, or a folder in ATTENTION_LAB_MODELS. Searches that folder first,
    then the local Hugging Face cache, the bundled packages, and this project's own models.
    Raises ValueError if the name is neither a plain name nor a Hub id.
    """
    for folder in local_folders(name):
        if checkpoint.is_complete(folder):
            return WeightsSource("folder", folder)
    spec = find_spec(name)
    hub_id = spec.hub_id if spec else name
    if "/" in hub_id:
        cached = hub_cache_folder(hub_id, spec.revision if spec else "main")
        if cached is not None and checkpoint.is_complete(cached):
            return WeightsSource("hub cache", cached)
    if spec is not None and spec.package is not None:
        bundled = bundled_folder(spec)
        if bundled is not None:
            return WeightsSource("bundled", bundled)
    if spec is not None and checkpoint.is_complete(TRAINED_HERE / spec.name):
        return WeightsSource("trained here", TRAINED_HERE / spec.name)
    return None


def hub_cache() -> Path:
    """The folder of the local Hugging Face cache."""
    from huggingface_hub import constants

    # The library only reads this variable at import, but it may be set later.
    return settings.HUB_CACHE.read() or Path(constants.HF_HUB_CACHE)


def _hub_cache_or_none() -> Path | None:
    """The Hugging Face cache; None if its variable is invalid, so other models still work."""
    try:
        return hub_cache()
    except ValueError:
        return None


def cache_repository(hub_id: str, cache: Path) -> Path:
    """The path of a model's folder in a Hugging Face cache; it may not exist."""
    return cache / ("models--" + check_hub_id(hub_id).replace("/", "--"))


def hub_cache_folder(hub_id: str, revision: str, cache: Path | None = None) -> Path | None:
    """The snapshot folder of a model in the local Hugging Face cache, or None; offline.

    Returns the same as huggingface_hub's `try_to_load_from_cache`, whose import takes a quarter of
    a second. The file refs/<revision> contains the commit, which is the name of the snapshot.
    """
    cache = cache or _hub_cache_or_none()
    if cache is None:
        return None
    repository = cache_repository(hub_id, cache)
    ref = repository / "refs" / revision
    try:
        commit = read_bytes(ref, 1_000).decode() if ref.exists() else revision
    except (OSError, ValueError):
        return None
    if not COMMIT.fullmatch(commit):
        return None
    snapshot = repository / "snapshots" / commit
    return snapshot if (snapshot / checkpoint.CONFIG_FILE).is_file() else None


def package_folder(package: str) -> Path | None:
    """The folder of an installed package, found without importing it; None if it's missing."""
    try:
        module_spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if module_spec is None or not module_spec.submodule_search_locations:
        return None
    folder = Path(next(iter(module_spec.submodule_search_locations)))
    return folder if folder.is_dir() else None


def bundled_folder(spec: ModelSpec) -> Path | None:
    """The folder inside a bundled package that contains the model's data files, or None."""
    package = package_folder(spec.package) if spec.package else None
    if package is None:
        return None
    if next(package.glob("*.gguf"), None) is not None:
        return package
    model = package / "model"
    return model if checkpoint.is_complete(model) else None


def uncatalogued() -> Iterator[tuple[str, WeightsSource]]:
    """Models on this machine that aren't in the catalog but that the core can load.

    First the folders in ATTENTION_LAB_MODELS, under their own names, then the models in the local
    Hugging Face cache, under their Hub ids. Names are unique, and unusable models are left out.
    """
    for name in (*_folder_names(), *_cached_hub_ids()):
        if find_spec(name) or find_spec(name.replace("--", "/", 1)):
            continue
        try:
            source = find(name)
        except (OSError, ValueError):  # a link out of the folder, a bad name, or unreadable
            continue
        # If the files of a Hub id are in the models folder, it was listed under the folder's name.
        if source is not None and source.kind == ("hub cache" if "/" in name else "folder"):
            yield name, source


def _folder_names() -> list[str]:
    """The names of all folders in ATTENTION_LAB_MODELS, sorted."""
    root = models_root()
    return _directories(root) if root is not None else []


def _cached_hub_ids() -> list[str]:
    """The ids of all models in the local Hugging Face cache, complete or not, sorted."""
    cache = _hub_cache_or_none()
    repositories = (name.split("--") for name in _directories(cache)) if cache else ()
    return ["/".join(rest) for kind, *rest in repositories if kind == "models" and len(rest) == 2]


def _directories(folder: Path) -> list[str]:
    """The names of the folders directly in a folder, sorted; empty if it can't be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []
