"""Interleaved timing: runs alternate, so that load spikes affect them all equally.

Compare the ratios. Seconds depend on the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

Result = TypeVar("Result")


@dataclass(frozen=True)
class Samples:
    """Repeated measurements of one quantity."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Reject an empty series."""
        if not self.values:
            raise ValueError("at least 1 value is needed")

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)

    def __format__(self, spec: str) -> str:
        """Median and range, each formatted with `spec`: `4.10 (3.98..4.31)`."""
        return f"{self.median:{spec}} ({self.low:{spec}}..{self.high:{spec}})"


def interleave(
    runs: Mapping[str, Callable[[], Result]], *, repeats: int, warmups: int = 1
) -> dict[str, list[Result]]:
    """Call every run `repeats` times, alternating, and return all results.

    The order rotates, so every run goes first, second, ... equally often (give or take one). The
    results of the first `warmups` rounds are dropped.
    Raises: ValueError without runs, or with fewer than 1 repeat.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    if not runs:
        raise ValueError("there must be at least 1 run, got 0")
    names = list(runs)
    results: dict[str, list[Result]] = {name: [] for name in names}
    for round_ in range(-warmups, repeats):
        start = round_ % len(names)  # [first run]
        for name in names[start:] + names[:start]:
            result = runs[name]()  # [result]
            if round_ >= 0:
                results[name].append(result)
    return results


def seconds_of(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call, on any device."""
    synchronize()
    begin = time.perf_counter()
    call()
    synchronize()
    return time.perf_counter() - begin


def synchronize(device: torch.device | None = None) -> None:
    """Wait for this thread's work on a GPU; without a device, on the current GPU.

    This waits for the current stream only. Waiting for the whole device would abort a CUDA graph
    capture in another thread.
    """
    if torch.cuda.is_available() and (device is None or device.type == "cuda"):
        torch.cuda.current_stream(device).synchronize()


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Samples:
    """`numerator / denominator` for each repeat, comparing runs of the same round."""
    return Samples(tuple(n / d for n, d in zip(numerator, denominator, strict=True)))
