"""Reads regular files of a model folder, and detects whether they have changed.

The folder may be untrusted, and its files may be replaced while the site is running.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

# Configurations, tokenizers, vocabularies and weights.
_SUFFIXES = (".json", ".txt", ".safetensors", ".gguf")


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises OSError if it can't be opened or isn't a regular file, such as a FIFO, which would block
    forever.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it isn't a regular file", str(path))
    return file


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without blocking, even if it's a FIFO."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The contents of a regular file of at most `max_bytes`.

    Raises ValueError if it can't be read, is larger, or isn't a regular file.
    """
    try:
        with open_file(path) as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise ValueError(f"{path.name} can't be read: {error.strerror or error}.") from error
    if len(raw) > max_bytes:
        raise ValueError(f"{path.name} is larger than the limit of {max_bytes:,} bytes.")
    return raw


def fingerprint(folder: Path) -> str:
    """A digest of the size, modification time and inode of every file that a model may use.

    It changes when a file is rewritten, replaced, added or removed. No file is opened.
    """
    states = [(name, s.st_size, s.st_mtime_ns, s.st_ino) for name, s in _states(folder)]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def last_write(folder: Path) -> float:
    """The latest modification time of a model's files, in seconds since 1970; 0 without files."""
    return max((state.st_mtime for _, state in _states(folder)), default=0.0)


def _states(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Names and `stat` results of the files that a model may use, sorted by name."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIXES))
    except OSError:  # removed or unreadable, which opening a file will report
        return
    for name in names:
        with suppress(OSError):
            yield name, os.stat(folder / name)  # follows links
