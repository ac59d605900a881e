"""Interleaved timing: what is compared runs in turns, so that a busier minute falls on all of it.

Read the ratios: they travel between machines, seconds do not.
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
    """One number a repeat, all of the same quantity."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse an empty series."""
        if not self.values:
            raise ValueError("at least 1 value is needed")

    @property
    def median(self) -> float:
        """The middle value."""
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
        """Median and range, each number in the format `spec`: `4.10 (3.98..4.31)`."""
        return f"{self.median:{spec}} ({self.low:{spec}}..{self.high:{spec}})"


def interleave(
    runs: Mapping[str, Callable[[], Result]], *, repeats: int, warmups: int = 1
) -> dict[str, list[Result]]:
    """Call every run `repeats` times, in turns, and return what each call returned.

    Every run goes first, second, ... equally often (up to one): the order rotates from one repeat
    to the next. The results of `warmups` rounds before that are dropped.
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
    """The wall-clock seconds of one call, whatever device it uses."""
    synchronize()
    begin = time.perf_counter()
    call()
    synchronize()
    return time.perf_counter() - begin


def synchronize(device: torch.device | None = None) -> None:
    """Wait until a GPU has done what this thread gave it; without a device, any there is.

    Nobody waits for the whole device: that would end the recording of a graph in another thread.
    """
    if torch.cuda.is_available() and (device is None or device.type == "cuda"):
        torch.cuda.current_stream(device).synchronize()


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Samples:
    """`numerator / denominator`, repeat by repeat: what ran in the same round is compared."""
    return Samples(tuple(n / d for n, d in zip(numerator, denominator, strict=True)))
