"""Detect the GPU that models run on, and its memory, without importing torch."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
from pathlib import Path

DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # on Linux, and on WSL


def is_available() -> bool:
    """Whether there is a GPU and a torch build that can use it; Linux only."""
    return any(device.exists() for device in DEVICES) and not _torch_version().endswith("+cpu")


@functools.cache
def memory_bytes() -> int | None:
    """Bytes of the smallest GPU; None if models run on the CPU, 0 if the size is unknown."""
    if not is_available():
        return None
    # not with torch, which takes seconds to import and would use half a gigabyte of GPU memory
    command = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return min(int(line) for line in answer.stdout.splitlines()) << 20  # the output is in MiB
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "+cpu"
