"""The user's cache folder, and sealed folders in it: written once, complete or not at all."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pretrained.checkpoint import read_json
from pretrained.model_files import open_file

MANIFEST = "manifest.json"
_LOCK_SECONDS = 300.0

# Files whose hash this process has checked: path -> (size, mtime_ns, inode) at that time.
_verified: dict[Path, tuple[int, int, int]] = {}
# Folders that this process built in a temporary place because the cache could not be written.
_temporary: dict[str, Path] = {}
_temporary_lock = threading.Lock()


def cache_root() -> Path:
    """ATTENTION_LAB_CACHE, or the platform's cache folder for this application. Not created.

    Raises RuntimeError when the user has no home folder.
    """
    value = os.environ.get("ATTENTION_LAB_CACHE", "").strip()
    if value:
        return Path(value).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "attention-lab"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "attention-lab" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attention-lab"


def sealed_folder(key: str, build: Callable[[Path], None]) -> Path:
    """The folder `key` in the cache, built by `build(empty_folder)` if it is not there and sound.

    Safe among processes: one builds under a lock, into a folder of its own that is renamed when it
    is complete; the others wait. A damaged folder is noticed and built again. When the cache
    cannot be written, the folder is built in a temporary place that is removed when this process
    ends. Raises OSError only when that fails too, and whatever else `build` raises; nothing is left
    of a folder that could not be built.
    """
    root = _root_or_none()
    if root is not None:
        # read-only, full, or a lock held for minutes: this process helps itself below
        with suppress(OSError):
            return _shared(root, key, build)
    with _temporary_lock:
        if key in _temporary and is_sound(_temporary[key]):
            return _temporary[key]
        folder = Path(tempfile.mkdtemp(prefix="attention-lab-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        try:
            build(folder)
            seal(folder)
        except BaseException:  # half a gigabyte, for every visitor who asks again
            shutil.rmtree(folder, ignore_errors=True)
            raise
        _temporary[key] = folder
        return folder


def _root_or_none() -> Path | None:
    try:
        return cache_root()
    except RuntimeError:  # no home folder
        return None


def seal(folder: Path) -> None:
    """Write the manifest: the size and SHA-256 of every file of the folder."""
    files = {
        file.name: {"size": file.stat().st_size, "sha256": sha256(file)}
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != MANIFEST
    }
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=1), encoding="utf-8")


def is_sound(folder: Path) -> bool:
    """Whether every file of a sealed folder is there and unchanged.

    Sizes and times are compared on every call; a hash is computed once per process and file, and
    again when its size, time or inode changed (half a gigabyte takes about 0.3 s).
    """
    try:
        files = read_json(folder / MANIFEST, 100_000).get("files")
        if not isinstance(files, dict) or not files:
            return False
        return all(_is_unchanged(folder / name, entry) for name, entry in files.items())
    except (OSError, ValueError, TypeError, KeyError):
        return False


def sha256(file: Path) -> str:
    """The file's SHA-256 as hexadecimal digits. Raises OSError when it is no regular file."""
    with open_file(file) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _is_unchanged(file: Path, entry: dict[str, object]) -> bool:
    stat = file.stat()
    if stat.st_size != entry["size"]:
        return False
    state = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
    if _verified.get(file) != state:
        if sha256(file) != entry["sha256"]:
            return False
        _verified[file] = state
    return True


def _shared(root: Path, key: str, build: Callable[[Path], None]) -> Path:
    """The sealed folder in the shared cache. Raises OSError when the cache cannot be written."""
    from filelock import FileLock

    folder = root / key
    if is_sound(folder):  # also the way in for a cache that is complete but read-only
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f"{key}.lock", timeout=_LOCK_SECONDS):
        if is_sound(folder):  # another process was faster
            return folder
        # Whoever left these is gone: writing needs the lock that is held here.
        for stale in root.glob(f".{key}.*"):
            shutil.rmtree(stale, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=root))
        try:
            build(work)
            seal(work)
            # mkdtemp and some writers keep it private; a prepared image is read by others
            work.chmod(0o755)
            for file in work.iterdir():
                file.chmod(0o644)
            if folder.exists():  # damaged, or it would have been sound above
                folder.rename(root / f".{key}.damaged-{os.getpid()}")
            work.rename(folder)
        finally:
            for left in root.glob(f".{key}.*"):
                shutil.rmtree(left, ignore_errors=True)
    return folder
