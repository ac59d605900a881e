"""Reading the files of a model folder: regular files only, and whether they changed since.

A folder may be untrusted, and its files may be replaced while the site runs.
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

# What any reader here opens: configurations and tokenizers, vocabularies, and weights.
_SUFFIXES = (".json", ".txt", ".safetensors", ".gguf")


def open_file(path: Path) -> BufferedReader:
    """A regular file, open for reading. Opening a FIFO would wait forever.

    Raises OSError when the file cannot be opened or is not a regular file.
    """
    file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 (the caller's)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def _open_at_once(path: str, flags: int) -> int:
    """A file descriptor that never waits for whoever writes into a FIFO."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The contents of a regular file of at most `max_bytes`.

    Raises ValueError when it cannot be read, is larger, or is not a regular file.
    """
    try:
        with open_file(path) as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if len(raw) > max_bytes:
        raise ValueError(f"{path.name} is larger than {max_bytes:,} bytes.")
    return raw


def fingerprint(folder: Path) -> str:
    """A digest of the size, modification time, and inode of every file that a model may use.

    It changes when a file is rewritten, replaced, added, or removed. No file is opened.
    """
    states = [(name, s.st_size, s.st_mtime_ns, s.st_ino) for name, s in _states(folder)]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]


def last_write(folder: Path) -> float:
    """When a file that a model may use was last written, in seconds since 1970; 0 if none is."""
    return max((state.st_mtime for _, state in _states(folder)), default=0.0)


def _states(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files that a model may use, by name, and what the file system knows of each."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIXES))
    except OSError:  # removed, or not readable: opening its files says so
        return
    for name in names:
        with suppress(OSError):
            yield name, os.stat(folder / name)  # of the file that a link points to
