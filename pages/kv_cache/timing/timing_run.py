"""The steps of a timing job, and the statistics computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving import models
from serving.step_times import StepTime
from serving.timing.measurement import TimedStep
from serving.timing.timed_contenders import CORE_GRAPHS, CORE_INT8, PAIRS, TimingRequest

if TYPE_CHECKING:
    from attention_core.costs.step_times import Fit
    from attention_core.costs.stopwatch import Samples

LECTURE_TOKENS = 100
MIN_STEPS = 8  # a stopped run with fewer steps is discarded


class Recorder:
    """The steps in the order they ran. The worker adds them; the page reads them."""

    def __init__(self, names: tuple[str, ...], repeats: int) -> None:
        self.steps: dict[str, list[list[StepTime]]] = {
            name: [[] for _ in range(repeats)] for name in names
        }
        self.largest_difference: float | None = None
        self.parted: dict[str, int] = {}  # contender -> first step with a different token

    @property
    def n_steps(self) -> int:
        """Number of steps so far, over all contenders and repeats."""
        return sum(len(repeat) for repeats in self.steps.values() for repeat in repeats)

    def add(self, timed: TimedStep) -> None:
        """Add a step and update the comparison."""
        self.largest_difference, self.parted = timed.largest_difference, timed.parted
        self.steps[timed.name][timed.repeat].append(timed.step)


@dataclass(frozen=True, eq=False)
class TimingSeries:
    """All steps of one contender; the first of each repeat is the prefill.

    seconds, token_ids: (repeats, steps). n_new, n_keys, cache_length, flops: (steps,).
    terms: operations of a decode step that are constant, linear and quadratic in the tokens.
    """

    cached: bool
    seconds: np.ndarray
    token_ids: np.ndarray
    n_new: np.ndarray
    n_keys: np.ndarray
    cache_length: np.ndarray
    flops: np.ndarray
    terms: tuple[int, int, int]

    @cached_property
    def medians(self) -> np.ndarray:
        """Median seconds of each step over the repeats: (steps,)."""
        return np.asarray(np.median(self.seconds, axis=0))

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Total seconds of the first 1, 2, ... steps of each repeat: (repeats, steps)."""
        return np.cumsum(self.seconds, axis=1)

    def total(self, n_new: int) -> Samples:
        """Seconds for the first `n_new` tokens, prefill included, one value per repeat."""
        return _samples(self.cumulative[:, n_new - 1])

    @property
    def first_token(self) -> Samples:
        """Seconds of the prefill."""
        return _samples(self.seconds[:, 0])

    @property
    def decode_rate(self) -> Samples:
        """Tokens per second after the first token."""
        decode = self.seconds[:, 1:]
        return _samples(decode.shape[1] / decode.sum(axis=1))

    @cached_property
    def fit(self) -> Fit:
        """A fit of the median decode steps against the number of tokens so far."""
        from attention_core.costs.step_times import fit_step_times

        return fit_step_times(self.n_keys[1:].tolist(), self.medians[1:].tolist())

    @cached_property
    def exponent(self) -> float:
        """Exponent by which total time grows, from a quarter of the run to its end."""
        from attention_core.costs.step_times import total_exponent

        n = len(self.medians)
        return total_exponent(self.medians.tolist(), [n // 4, n // 2, 3 * n // 4, n])


@dataclass(frozen=True, eq=False)
class TimingRun:
    """A finished measurement.

    stopped: whether the visitor stopped it before all repeats were done. stalled_seconds: seconds
    for which the process stalled while it ran; if not 0, the times aren't a valid measurement.
    """

    question: TimingRequest
    device: str
    ended: datetime
    n_prompt: int
    value_bytes: int
    stopped: bool
    series: Mapping[str, TimingSeries]
    largest_difference: float | None
    parted: Mapping[str, int]
    stalled_seconds: float = 0.0

    @property
    def n_new(self) -> int:
        """Number of new tokens per repeat."""
        return len(next(iter(self.series.values())).medians)

    @property
    def repeats(self) -> int:
        """Number of repeats."""
        return len(next(iter(self.series.values())).seconds)

    @property
    def summary(self) -> str:
        """The settings in a line of plain text; the model's name may come from a visitor."""
        return (
            f"{self.ended:%Y-%m-%d %H:%M:%S} UTC: {models.title(self.question.model)}, "
            f"{self.n_prompt} prompt tokens, {self.n_new} new, repeats: {self.repeats}"
            f"{', stopped early' * self.stopped}"
        )

    @property
    def short_summary(self) -> str:
        """The settings that distinguish runs, short enough for a menu."""
        return (
            f"{models.title(self.question.model)}, {self.n_prompt} + {self.n_new} tokens"
            f"{', stopped early' * self.stopped}"
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs of a cached and an uncached contender that were both timed."""
        return [pair for pair in PAIRS if set(pair) <= set(self.series)]

    def ratio(self, slow: str, fast: str, n_new: int) -> Samples:
        """Total time of `slow` ÷ total time of `fast` for `n_new` tokens, per repeat."""
        from attention_core.costs.stopwatch import paired_ratio

        return paired_ratio(
            self.series[slow].cumulative[:, n_new - 1].tolist(),
            self.series[fast].cumulative[:, n_new - 1].tolist(),
        )

    def break_even(self, cached: str, uncached: str) -> int | None:
        """The number of new tokens from which the cached total stays lower.

        Computed from the median steps. None if the cached total isn't lower at the end.
        """
        from attention_core.costs.step_times import break_even

        return break_even(
            self.series[cached].medians.tolist(), self.series[uncached].medians.tolist()
        )

    def weight_rate(self, name: str) -> float | None:
        """Bytes per second, if reading the weights takes all of a step's constant time.

        Each weight is used in one multiply and add per token. None if the constant isn't clearly
        nonzero.
        """
        constant = self.series[name].fit.constant
        if not constant.is_clear or constant.value <= 0:
            return None
        return self.weight_bytes(name) / constant.value

    def weight_bytes(self, name: str) -> int:
        """Bytes of the weights used by a decode step."""
        constant, linear, _ = self.series[name].terms
        n_bytes = {CORE_INT8: 1, CORE_GRAPHS: 2}.get(name, self.value_bytes)
        # without a cache, operations on weights grow with the tokens, except in the output layer
        return (constant if self.series[name].cached else constant + linear) // 2 * n_bytes

    def steps(self) -> pd.DataFrame:
        """Every step of every repeat, with the settings and the device."""
        parts = []
        for name, series in self.series.items():
            for repeat, (seconds, ids) in enumerate(
                zip(series.seconds, series.token_ids, strict=True)
            ):
                n = len(seconds)
                parts.append(
                    pd.DataFrame(
                        {
                            "contender": name,
                            "repeat": repeat,
                            "step": np.arange(1, n + 1),
                            "kind": ["prefill"] + ["decode"] * (n - 1),
                            "token id": ids,
                            "milliseconds": seconds * 1e3,
                            "tokens processed": series.n_new,
                            "keys": series.n_keys,
                            "cache length": series.cache_length,
                            "FLOPs": series.flops,
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True)

    def export_table(self, max_prompt: int) -> pd.DataFrame:
        """`steps` with the settings in every row, for download; the prompt is shortened."""
        return self.steps().assign(
            model=self.question.model,
            prompt=self.question.prompt[:max_prompt],
            ended=f"{self.ended:%Y-%m-%dT%H:%M:%SZ}",
            device=self.device,
        )

    def medians(self) -> pd.DataFrame:
        """Every step with the median and range of its milliseconds over the repeats."""
        parts = [
            pd.DataFrame(
                {
                    "contender": name,
                    "step": np.arange(1, self.n_new + 1),
                    "median, ms": series.medians * 1e3,
                    "fastest, ms": series.seconds.min(axis=0) * 1e3,
                    "slowest, ms": series.seconds.max(axis=0) * 1e3,
                    "tokens processed": series.n_new,
                    "keys": series.n_keys,
                    "cache length": series.cache_length,
                    "FLOPs": series.flops,
                }
            )
            for name, series in self.series.items()
        ]
        return pd.concat(parts, ignore_index=True)


def complete_block(recorder: Recorder, n_new: int) -> tuple[int, int]:
    """Complete repeats and their steps, or the part of the first repeat that ran."""
    counts = [[len(repeat) for repeat in repeats] for repeats in recorder.steps.values()]
    each = [min(column) for column in zip(*counts, strict=True)]
    whole = sum(count == n_new for count in each)
    return (whole, n_new) if whole else (1, each[0])


def series(
    recorder: Recorder, name: str, shape: tuple[int, int], *, cached: bool, terms: tuple[int, ...]
) -> TimingSeries:
    """The steps of a contender within a block of repeats and steps."""
    repeats, n = shape
    kept = [repeat[:n] for repeat in recorder.steps[name][:repeats]]
    first = kept[0]
    constant, linear, quadratic = terms
    return TimingSeries(
        cached=cached,
        seconds=np.array([[step.seconds for step in repeat] for repeat in kept]),
        token_ids=np.array([[step.token_id for step in repeat] for repeat in kept]),
        n_new=np.array([step.n_new for step in first]),
        n_keys=np.array([step.n_keys for step in first]),
        cache_length=np.array([step.cache_length for step in first]),
        flops=np.array([step.flops for step in first]),
        terms=(constant, linear, quadratic),
    )


def stalled_seconds(recorder: Recorder, shape: tuple[int, int]) -> float:
    """Seconds for which the process stalled within a block of repeats and steps."""
    repeats, n = shape
    kept = [r[:n] for of_name in recorder.steps.values() for r in of_name[:repeats]]
    return sum(step.stalled_seconds for repeat in kept for step in repeat)


def _samples(values: np.ndarray) -> Samples:
    from attention_core.costs.stopwatch import Samples

    return Samples(tuple(float(value) for value in values))
