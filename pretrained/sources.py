"""Finding a model's weights on this machine.

They lie in a local folder, in the Hugging Face cache, in an installed package, or in this project.

Nothing here reaches for the network, opens a weight file, or runs a package's code.
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
from pretrained.specs import ModelSpec, spec_of

SourceKind = Literal["folder", "hub cache", "bundled", "trained here"]

# The models that this project has trained itself (`training/`), a folder for each.
TRAINED_HERE = Path(__file__).parent / "checkpoints"

COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class WeightsSource:
    """Where a model's weights are stored: the kind of location, the folder, and its version.

    For the bundled SmolLM2 the folder holds a GGUF file; otherwise config.json and safetensors.
    The version is the fingerprint of the folder's files when this was made: when a file changes,
    the same folder is another source.
    """

    kind: SourceKind
    path: Path
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", fingerprint(self.path))


CLOCK_TICK = 0.05  # seconds; file systems round times to 10 ms or less


class FilesChanged(ValueError):
    """The files of a model are no longer those that were found in its folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"The files in the model folder {folder.name} changed on disk after the model was "
            "opened. Reload the page to open it again."
        )


class UnusableModel(ValueError):
    """A model that is on this machine and can't be loaded, perhaps since a moment ago."""


@contextmanager
def unchanged(source: WeightsSource) -> Iterator[None]:
    """Read files of a source inside.

    Waits up to `CLOCK_TICK` seconds for files that were written just now: a second write within
    one tick of the file system's clock would not show in their times.
    Raises FilesChanged when they are not those that were found, before the reading or after it.
    """
    age = time.time() - last_write(source.path)
    if 0 <= age < CLOCK_TICK:
        time.sleep(CLOCK_TICK - age)
    _check_unchanged(source)
    try:
        yield
    except ValueError:
        _check_unchanged(source)  # half of a new file looks like a damaged one
        raise
    _check_unchanged(source)


def _check_unchanged(source: WeightsSource) -> None:
    if fingerprint(source.path) != source.version:
        raise FilesChanged(source.path)


def models_root() -> Path | None:
    """The folder named by ATTENTION_LAB_MODELS, or None when it is not set or not there."""
    try:
        return settings.MODELS.read()
    except ValueError:  # it was there when the site started
        return None


def local_folders(name: str) -> list[Path]:
    """Existing folders in ATTENTION_LAB_MODELS for a name: by name, then by hub id.

    Raises ValueError for a hostile name, or for a folder that is a link to somewhere else.
    """
    check_name(name)
    root = models_root()
    if root is None:
        return []
    spec = spec_of(name)
    names = [spec.name, spec.hub_id] if spec else [name]
    folders = []
    for candidate in dict.fromkeys(n.replace("/", "--") for n in names):
        folder = root / candidate
        if os.path.isdir(folder):
            if not folder.resolve().is_relative_to(root.resolve()):
                raise ValueError(f"The model folder {candidate} links out of the models folder.")
            folders.append(folder)
    return folders


def folder_at(model: str | os.PathLike[str]) -> Path | None:
    """The absolute path of a folder that is named by its path; None for the name of a model.

    A path object, an absolute path, and a string such as "./x", "../x" or "~/x" are paths; another
    string with a "/" is one if that folder holds a config.json. Only who runs the program may name
    a path: a stranger's text goes through `find`, which takes names alone.
    """
    if isinstance(model, os.PathLike):
        return Path(model).absolute()
    if not isinstance(model, str):  # no name either, which `check_name` says
        return None
    path = os.path.expanduser(model)
    is_path = os.path.isabs(path) or model.split("/")[0] in (".", "..")
    # os.path answers False for what may not be read and for names that no file can have
    holds_model = "/" in model and os.path.isfile(os.path.join(path, checkpoint.CONFIG_FILE))
    return Path(path).absolute() if is_path or holds_model else None


def find(name: str) -> WeightsSource | None:
    """Where the weights of `name` lie on this machine, or None.

    `name` is a catalogue name, a hub id, or a folder in ATTENTION_LAB_MODELS. Looked for in this
    order: that folder, the local Hugging Face cache, the bundled packages, and what was trained
    here. Raises ValueError for a name that is neither a plain name nor a hub id.
    """
    for folder in local_folders(name):
        if checkpoint.is_complete(folder):
            return WeightsSource("folder", folder)
    spec = spec_of(name)
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

    # The library reads its variables once, at import; a value set later has to count too.
    return settings.HUB_CACHE.read() or Path(constants.HF_HUB_CACHE)


def _hub_cache_or_none() -> Path | None:
    """None if the variable names no folder: models from elsewhere can be used all the same."""
    try:
        return hub_cache()
    except ValueError:
        return None


def cache_repository(hub_id: str, cache: Path) -> Path:
    """The folder of a model in a Hugging Face cache, whether it is there or not."""
    return cache / ("models--" + check_hub_id(hub_id).replace("/", "--"))


def hub_cache_folder(hub_id: str, revision: str, cache: Path | None = None) -> Path | None:
    """The snapshot folder of a model in the local Hugging Face cache, or None. No network.

    The answer of huggingface_hub's `try_to_load_from_cache`, whose import takes a quarter of a
    second: refs/<revision> holds the commit that names the snapshot.
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
    """The folder of an installed top-level package, found without importing it; None if absent."""
    try:
        module_spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if module_spec is None or not module_spec.submodule_search_locations:
        return None
    folder = Path(next(iter(module_spec.submodule_search_locations)))
    return folder if folder.is_dir() else None


def bundled_folder(spec: ModelSpec) -> Path | None:
    """The folder inside a bundled package that holds the model's data files, or None."""
    package = package_folder(spec.package) if spec.package else None
    if package is None:
        return None
    if next(package.glob("*.gguf"), None) is not None:
        return package
    model = package / "model"
    return model if checkpoint.is_complete(model) else None


def uncatalogued() -> Iterator[tuple[str, WeightsSource]]:
    """Models on this machine that the catalogue does not know and the core can hold.

    Folders of ATTENTION_LAB_MODELS under their own names, then what lies in the local Hugging Face
    cache under its hub id. No name comes twice, and what cannot be used is left out.
    """
    for name in (*_folder_names(), *_cached_hub_ids()):
        if spec_of(name) or spec_of(name.replace("--", "/", 1)):
            continue
        try:
            source = find(name)
        except (OSError, ValueError):  # a link to elsewhere, no name of ours, or not readable
            continue
        # A hub id whose files lie in the models folder was listed under that folder's name.
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
    """The names of the folders directly in a folder, sorted; none when it cannot be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []
