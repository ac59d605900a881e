"""The steps of a timing job as they come, and what follows from them."""

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
from serving.timing.measurement import Timed
from serving.timing.subjects import CORE_GRAPHS, CORE_INT8, PAIRS, TimingRequest

if TYPE_CHECKING:
    from attention_core.costs.step_times import Fit
    from attention_core.costs.stopwatch import Samples

LECTURE_TOKENS = 100
MIN_STEPS = 8  # of a run that was stopped: fewer say nothing


class Recorder:
    """Steps in the order in which they were run. The worker adds, the page reads."""

    def __init__(self, names: tuple[str, ...], repeats: int) -> None:
        self.steps: dict[str, list[list[StepTime]]] = {
            name: [[] for _ in range(repeats)] for name in names
        }
        self.largest_difference: float | None = None
        self.parted: dict[str, int] = {}  # contender -> first step with another token

    @property
    def n_steps(self) -> int:
        """Steps of all contenders and repeats so far."""
        return sum(len(repeat) for repeats in self.steps.values() for repeat in repeats)

    def add(self, timed: Timed) -> None:
        """Keep a step, and what the comparison says after it."""
        self.largest_difference, self.parted = timed.largest_difference, timed.parted
        self.steps[timed.name][timed.repeat].append(timed.step)


@dataclass(frozen=True, eq=False)
class TimingSeries:
    """All steps of one contender; the first of each repeat is the prefill.

    seconds, token_ids: (repeats, steps). n_new, n_keys, cache_length, flops: (steps,).
    terms: of a decode step's operations, constant, linear and quadratic in the number of tokens.
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
        """Seconds of each step, the median over the repeats: (steps,)."""
        return np.asarray(np.median(self.seconds, axis=0))

    @cached_property
    def cumulated(self) -> np.ndarray:
        """Seconds of the first 1, 2, ... steps of each repeat: (repeats, steps)."""
        return np.cumsum(self.seconds, axis=1)

    def total(self, n_new: int) -> Samples:
        """Seconds for the first `n_new` tokens, prefill included, one value a repeat."""
        return _samples(self.cumulated[:, n_new - 1])

    @property
    def first_token(self) -> Samples:
        """Seconds of the prefill."""
        return _samples(self.seconds[:, 0])

    @property
    def decode_rate(self) -> Samples:
        """Tokens a second after the first one."""
        decode = self.seconds[:, 1:]
        return _samples(decode.shape[1] / decode.sum(axis=1))

    @cached_property
    def fit(self) -> Fit:
        """The median decode steps against the number of tokens at them."""
        from attention_core.costs.step_times import fit_step_times

        return fit_step_times(self.n_keys[1:].tolist(), self.medians[1:].tolist())

    @cached_property
    def exponent(self) -> float:
        """The power of total time with new tokens, from a quarter of the run to its end."""
        from attention_core.costs.step_times import total_exponent

        n = len(self.medians)
        return total_exponent(self.medians.tolist(), [n // 4, n // 2, 3 * n // 4, n])


@dataclass(frozen=True, eq=False)
class TimingRun:
    """A finished measurement.

    stopped: whether the visitor ended it before all repeats were done. stood_still: for how many
    seconds the process stood still while it ran; then its times aren't a measurement.
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
    stood_still: float = 0.0

    @property
    def n_new(self) -> int:
        """New tokens of each repeat that is kept."""
        return len(next(iter(self.series.values())).medians)

    @property
    def repeats(self) -> int:
        """Repeats that are kept."""
        return len(next(iter(self.series.values())).seconds)

    @property
    def summary(self) -> str:
        """The settings in a line; plain text, as the model's name may be a stranger's folder."""
        return (
            f"{self.ended:%Y-%m-%d %H:%M:%S} UTC: {models.title(self.question.model)}, "
            f"{self.n_prompt} prompt tokens, {self.n_new} new, repeats: {self.repeats}"
            f"{', stopped early' * self.stopped}"
        )

    @property
    def short_summary(self) -> str:
        """What tells the runs of a visit apart, as short as a list of choices needs it."""
        return (
            f"{models.title(self.question.model)}, {self.n_prompt} + {self.n_new} tokens"
            f"{', stopped early' * self.stopped}"
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The contenders, cached and uncached, that can be compared."""
        return [pair for pair in PAIRS if set(pair) <= set(self.series)]

    def ratio(self, slow: str, fast: str, n_new: int) -> Samples:
        """Total time of one contender over another's for `n_new` tokens, repeat by repeat."""
        from attention_core.costs.stopwatch import paired_ratio

        return paired_ratio(
            self.series[slow].cumulated[:, n_new - 1].tolist(),
            self.series[fast].cumulated[:, n_new - 1].tolist(),
        )

    def pays_from(self, cached: str, uncached: str) -> int | None:
        """From how many new tokens on the cached total stays the smaller one; None if it ends not.

        Of the steps' medians.
        """
        from attention_core.costs.step_times import pays_from

        return pays_from(
            self.series[cached].medians.tolist(), self.series[uncached].medians.tolist()
        )

    def weight_rate(self, name: str) -> float | None:
        """Bytes a second, if all that takes a cached step's constant time is reading the weights.

        Each of them takes part in one multiply and add a token. None where the constant is not
        clear of its error.
        """
        constant = self.series[name].fit.constant
        if not constant.is_clear or constant.value <= 0:
            return None
        return self.weight_bytes(name) / constant.value

    def weight_bytes(self, name: str) -> int:
        """Bytes of the weights that a decode step multiplies with."""
        constant, linear, _ = self.series[name].terms
        n_bytes = {CORE_INT8: 1, CORE_GRAPHS: 2}.get(name, self.value_bytes)
        # without a cache the weights' share is what grows with every token, beside the output's
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
                            "tokens run": series.n_new,
                            "keys": series.n_keys,
                            "cache length": series.cache_length,
                            "FLOPs": series.flops,
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True)

    def file(self, max_prompt: int) -> pd.DataFrame:
        """`steps` with the settings in every row, to take away; the prompt's first characters."""
        return self.steps().assign(
            model=self.question.model,
            prompt=self.question.prompt[:max_prompt],
            ended=f"{self.ended:%Y-%m-%dT%H:%M:%SZ}",
            device=self.device,
        )

    def medians(self) -> pd.DataFrame:
        """Every step, its milliseconds as the median and the range of the repeats."""
        parts = [
            pd.DataFrame(
                {
                    "contender": name,
                    "step": np.arange(1, self.n_new + 1),
                    "median, ms": series.medians * 1e3,
                    "least, ms": series.seconds.min(axis=0) * 1e3,
                    "most, ms": series.seconds.max(axis=0) * 1e3,
                    "tokens run": series.n_new,
                    "keys": series.n_keys,
                    "cache length": series.cache_length,
                    "FLOPs": series.flops,
                }
            )
            for name, series in self.series.items()
        ]
        return pd.concat(parts, ignore_index=True)


def block(recorder: Recorder, n_new: int) -> tuple[int, int]:
    """Repeats and steps that all contenders have: whole repeats, else the begun first one."""
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


def stood_still(recorder: Recorder, shape: tuple[int, int]) -> float:
    """For how many seconds the process stood still within a block of repeats and steps."""
    repeats, n = shape
    kept = [r[:n] for of_name in recorder.steps.values() for r in of_name[:repeats]]
    return sum(step.stood_still for repeat in kept for step in repeat)


def _samples(values: np.ndarray) -> Samples:
    from attention_core.costs.stopwatch import Samples

    return Samples(tuple(float(value) for value in values))
