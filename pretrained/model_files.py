"""Reading the files of a model folder: regular files only, and whether they changed since.

A folder may be untrusted, and its files may be replaced while the site runs.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
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
    states = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIXES))
    except OSError:  # removed, or not readable: opening its files says so
        names = []
    for name in names:
        try:
            found = os.stat(folder / name)  # of the file that a link points to
        except OSError:
            continue
        states.append((name, found.st_size, found.st_mtime_ns, found.st_ino))
    return hashlib.sha256(repr(states).encode()).hexdigest()[:16]
