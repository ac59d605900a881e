"""The user's cache folder, and sealed folders in it that are written completely or not at all."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pretrained import settings
from pretrained.checkpoint import read_json
from pretrained.model_files import open_file

if TYPE_CHECKING:
    from filelock import BaseFileLock

MANIFEST = "manifest.json"
_LOCK_SECONDS = 300.0

# Files whose hashes this process has checked: path -> (size, mtime_ns, inode) at that time.
_verified: dict[Path, tuple[int, int, int]] = {}
# Folders that this process built as temporary folders because the cache isn't writable.
_temporary: dict[str, Path] = {}
_temporary_lock = threading.Lock()
# Folders to remove when this process ends: temporary ones, with a lock that shows that their owner
# is alive, and incomplete ones in the cache, which the lock of their key protects.
_to_remove: dict[Path, BaseFileLock | None] = {}
_to_remove_lock = threading.Lock()

_TEMPORARY_NAME = re.compile(r"attention-lab-[0-9a-f]{16}")
# An incomplete folder in the cache: the key from `bundled_smollm2`, and a random suffix.
_HALF_FILLED_NAME = re.compile(r"\.[a-z0-9-]+-v\d+-[0-9a-f]{16}\.[A-Za-z0-9_-]+")


class _FolderRemoved(OSError):
    """The folder was removed while it was being filled, because the process is ending."""


def cache_root() -> Path:
    """ATTENTION_LAB_CACHE, or the platform's cache folder for this application; may not exist.

    Raises RuntimeError if the user has no home folder, and ValueError like
    `EnvironmentVariable.read`.
    """
    if (folder := settings.CACHE.read()) is not None:
        return folder
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "attention-lab"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "attention-lab" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attention-lab"


def sealed_folder(key: str, build: Callable[[Path], None]) -> Path:
    """The folder `key` in the cache; `build(empty_folder)` creates it if it's missing or damaged.

    Safe with several processes: one takes a lock and builds a separate folder, which is renamed
    when it's complete, and the others wait. If the cache isn't writable, a temporary folder is
    built instead. It's removed when this process ends (`remove_own`), or by the next process if
    this one is killed (`remove_stale`).
    Raises OSError if the temporary folder fails too, and any other error of `build`. A folder that
    couldn't be built leaves no files behind.
    """
    root = _root_or_none()
    if root is not None:
        try:
            return _shared(root, key, build)
        except _FolderRemoved:
            raise
        except OSError:  # read-only, full, or locked for minutes: use a temporary folder
            pass
    with _temporary_lock:
        if key in _temporary and is_sound(_temporary[key]):
            return _temporary[key]
        remove_stale()
        folder = _new_temporary_folder()
        try:
            build(folder)
            seal(folder)
        except BaseException:  # otherwise every attempt would leave half a gigabyte
            _remove(folder)
            raise
        _temporary[key] = folder
        return folder


def _root_or_none() -> Path | None:
    try:
        return cache_root()
    except (RuntimeError, ValueError):  # no home folder, or ATTENTION_LAB_CACHE has become invalid
        return None


def remove_own() -> None:
    """Remove the temporary and incomplete folders of this process before it ends.

    A server calls this itself, because `atexit` doesn't run if a signal ends the process. If
    another thread is building a `sealed_folder`, that call raises OSError.
    """
    with _to_remove_lock:
        folders = list(_to_remove)
    for folder in folders:
        _remove(folder)


def remove_stale() -> None:
    """Remove folders that killed processes left in the temporary folder and in the cache.

    They are recognized by their name and user, and are stale if their lock is free.
    """
    for folder in _matching_folders(Path(tempfile.gettempdir()), _TEMPORARY_NAME):
        lock = folder.with_name(f"{folder.name}.lock")
        if _is_removed(folder, lock):
            lock.unlink(missing_ok=True)
    for folder in _matching_folders(_root_or_none(), _HALF_FILLED_NAME):
        key = folder.name[1:].rpartition(".")[0]
        _is_removed(folder, folder.with_name(f"{key}.lock"))


def _matching_folders(place: Path | None, name: re.Pattern[str]) -> list[Path]:
    """Folders of this user directly in `place` whose names match."""
    uid = os.getuid() if hasattr(os, "getuid") else 0
    try:
        files = list(place.iterdir()) if place is not None else []
        return [f for f in files if name.fullmatch(f.name) and f.lstat().st_uid == uid]
    except OSError:
        return []


def _is_removed(folder: Path, lock: Path) -> bool:
    """Remove a folder if its lock is free, and return whether it was removed."""
    from filelock import FileLock

    try:
        with FileLock(lock, timeout=0):
            shutil.rmtree(folder)
    except OSError:  # the lock is held (Timeout is an OSError), or the folder can't be removed
        return False
    return True


def _new_temporary_folder() -> Path:
    """Create an empty folder, after taking its lock."""
    from filelock import FileLock

    folder = Path(tempfile.gettempdir()) / f"attention-lab-{secrets.token_hex(8)}"
    lock = FileLock(folder.with_name(f"{folder.name}.lock"), timeout=0, thread_local=False)
    lock.acquire()
    with _to_remove_lock:
        _to_remove[folder] = lock
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        _remove(folder)
        raise
    return folder


def _remove(folder: Path) -> None:
    """Remove a folder in `_to_remove`, and its lock."""
    for _ in range(10):  # another thread may still be creating files in it
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
    with _to_remove_lock:
        lock = _to_remove.pop(folder, None)
    if lock is not None:
        lock.release(force=True)
        Path(lock.lock_file).unlink(missing_ok=True)


atexit.register(remove_own)


def seal(folder: Path) -> None:
    """Write a manifest with the size and SHA-256 of every file in the folder."""
    files = {
        file.name: {"size": file.stat().st_size, "sha256": sha256(file)}
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != MANIFEST
    }
    (folder / MANIFEST).write_text(json.dumps({"files": files}, indent=1), encoding="utf-8")


def is_sound(folder: Path) -> bool:
    """Whether every file of a sealed folder exists and is unchanged.

    Sizes and times are compared on every call. A hash (0.3 s for half a gigabyte) is computed once
    per process and file, and again if the size, time or inode has changed.
    """
    try:
        files = read_json(folder / MANIFEST, 100_000).get("files")
        if not isinstance(files, dict) or not files:
            return False
        return all(_is_unchanged(folder / name, entry) for name, entry in files.items())
    except (OSError, ValueError, TypeError, KeyError):
        return False


def sha256(file: Path) -> str:
    """The file's SHA-256 in hexadecimal. Raises OSError if it isn't a regular file."""
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
    """The sealed folder in the shared cache. Raises OSError if the cache isn't writable."""
    from filelock import FileLock

    folder = root / key
    if is_sound(folder):  # checked first because a complete cache may be read-only
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f"{key}.lock", timeout=_LOCK_SECONDS):
        if is_sound(folder):  # another process has built it in the meantime
            return folder
        # Their owners have ended, because only the owner of this lock may write here.
        for stale in root.glob(f".{key}.*"):
            shutil.rmtree(stale, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=root))
        with _to_remove_lock:
            _to_remove[work] = None
        try:
            build(work)
            seal(work)
            # mkdtemp and some writers restrict access, but an image is read by a different user
            work.chmod(0o755)
            for file in work.iterdir():
                file.chmod(0o644)
            if folder.exists():  # it's damaged, because the check above failed
                folder.rename(root / f".{key}.damaged-{os.getpid()}")
            work.rename(folder)
        except OSError as error:
            if work not in _to_remove:
                raise _FolderRemoved("This process is about to end.") from error
            raise
        finally:
            for left in root.glob(f".{key}.*"):
                shutil.rmtree(left, ignore_errors=True)
            _remove(work)
    return folder
