"""The memory of the GPU that models run on, as far as it can be told without torch."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
from pathlib import Path

DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))  # of Linux, and of Linux within Windows


def is_here() -> bool:
    """Whether there is a GPU that the installed torch is built for, as far as Linux tells."""
    return any(device.exists() for device in DEVICES) and not _torch_version().endswith("+cpu")


@functools.cache
def memory_bytes() -> int | None:
    """Bytes of the smallest GPU here; None where models run on the CPU, 0 where nobody can tell."""
    if not is_here():
        return None
    # torch would tell too, but takes seconds to import and half a gigabyte of the GPU to ask
    command = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return min(int(line) for line in answer.stdout.splitlines()) << 20  # it tells MiB
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "+cpu"
