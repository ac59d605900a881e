"""Text tables for benchmarks, and a description of the machine."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import torch


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as aligned text; the first row is the header.

    The first column is left-aligned, the others right-aligned.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def machine() -> str:
    """The machine and the versions, in one line."""
    gpu = f"; GPU available: {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return (
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, CPU, float32, "
        f"Python {platform.python_version()}, {platform.machine()}{gpu}"
    )
