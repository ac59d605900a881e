"""Times of generation steps by position: interleaved measurements, fits and counts.

Without a cache, step n runs all n tokens. Its operations are a polynomial of degree 2 in n, and
those of a whole generation of degree 3, although reading the weights dominates for short texts.
With a cache, a step's operations are linear in n. Time follows operations when arithmetic is the
bottleneck.
Source: course notes, "KV cache": 6.77 s without a cache, 2.0 s with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from attention_core.costs.formulas import forward_flops
from attention_core.costs.serving import growth_exponent
from attention_core.generation import Step
from attention_core.model.config import TransformerConfig

WARM_UP = -1  # `repeat` of steps to ignore


@dataclass(frozen=True)
class ContenderStep:
    """One step of one contender; `repeat` counts from 0, or is `WARM_UP`."""

    repeat: int
    name: str
    step: Step


def interleave_steps(
    contenders: Mapping[str, Callable[[], Iterator[Step]]], *, repeats: int, warmup_steps: int = 2
) -> Iterator[ContenderStep]:
    """Run one step of each contender in turn, so that load spikes affect them all.

    Every repeat restarts all contenders. The first one changes from step to step and from repeat to
    repeat. A contender that ends early drops out. Each item taken from the iterator runs one step.
    The warm-up comes first; its two steps are a prefill and a decode step.
    Raises: ValueError without contenders, with fewer than 1 repeat, or a negative number of steps.
    """
    if not contenders or repeats < 1 or warmup_steps < 0:
        raise ValueError(
            f"{len(contenders)} contenders, {repeats} repeats, {warmup_steps} warm-up steps: at "
            "least 1, 1 and 0 are needed"
        )
    return _interleave_steps(contenders, repeats, warmup_steps)


def _interleave_steps(
    contenders: Mapping[str, Callable[[], Iterator[Step]]], repeats: int, warmup_steps: int
) -> Iterator[ContenderStep]:
    for name, start in contenders.items():
        for step in itertools.islice(start(), warmup_steps):
            yield ContenderStep(WARM_UP, name, step)
    for repeat in range(repeats):
        running = {name: start() for name, start in contenders.items()}
        for number in itertools.count():
            names = list(running)
            first = (repeat + number) % len(names)
            for name in names[first:] + names[:first]:
                next_step = next(running[name], None)
                if next_step is None:
                    del running[name]
                else:
                    yield ContenderStep(repeat, name, next_step)
            if not running:
                break


@dataclass(frozen=True)
class Coefficient:
    """A fitted coefficient and its standard error."""

    value: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether it's more than two standard errors away from zero."""
        return abs(self.value) > 2 * self.error


@dataclass(frozen=True)
class Fit:
    """Step time in seconds for n tokens: constant + linear n + quadratic n^2."""

    constant: Coefficient
    linear: Coefficient
    quadratic: Coefficient

    def predict(self, n: float) -> float:
        """The fitted seconds at n tokens."""
        return self.constant.value + n * (self.linear.value + n * self.quadratic.value)


def fit_step_times(n_tokens: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Fit step times by least squares, with standard errors.

    The errors assume independent deviations with equal variance, so pass one value per position
    (the median of its repeats).
    Raises: ValueError for fewer than 5 positions, or series of different lengths.
    """
    if len(n_tokens) != len(seconds) or len(set(n_tokens)) < 5:
        raise ValueError(
            f"{len(set(n_tokens))} different positions and {len(seconds)} times: a fit of three "
            "terms needs 5 positions with one time each"
        )
    n = torch.tensor(n_tokens, dtype=torch.float64)
    y = torch.tensor(seconds, dtype=torch.float64)
    scale = float(n.abs().max())  # scaled to at most 1 for a well-conditioned fit
    powers = (n / scale)[:, None] ** torch.arange(3)
    coefficients = torch.linalg.lstsq(powers, y).solution
    variance = (y - powers @ coefficients).square().sum() / max(1, len(y) - 3)
    errors = (variance * torch.linalg.inv(powers.T @ powers).diagonal()).sqrt()
    terms = [
        Coefficient(value / scale**power, error / scale**power)
        for power, (value, error) in enumerate(
            zip(coefficients.tolist(), errors.tolist(), strict=True)
        )
    ]
    return Fit(*terms)


def flops_terms(config: TransformerConfig, *, cached: bool) -> tuple[int, int, int]:
    """The exact constant, linear and quadratic terms of a decode step's operations.

    n counts all tokens so far, including the newest, as in `forward_flops`.
    Raises: ValueError for a model with a window, whose operations aren't a polynomial.
    """
    if config.window is not None:
        raise ValueError(f"with a window of {config.window} a step's cost isn't a polynomial")
    at_1, at_2, at_3 = (forward_flops(config, 1 if cached else n, n) for n in (1, 2, 3))
    quadratic = (at_3 - 2 * at_2 + at_1) // 2
    linear = at_2 - at_1 - 3 * quadratic
    return at_1 - linear - quadratic, linear, quadratic


def cumulative_seconds(step_seconds: Sequence[float]) -> tuple[float, ...]:
    """Cumulative seconds of the first 1, 2, ... steps."""
    return tuple(itertools.accumulate(step_seconds))


def break_even(cached: Sequence[float], uncached: Sequence[float]) -> int | None:
    """Number of new tokens from which the cached run stays ahead, or None.

    Both arguments are seconds per step, starting with the prefill.
    Raises: ValueError for different lengths.
    """
    if len(cached) != len(uncached):
        raise ValueError(f"got {len(cached)} cached and {len(uncached)} uncached steps")
    pays = None
    pairs = zip(cumulative_seconds(cached), cumulative_seconds(uncached), strict=True)
    for number, (with_cache, without_cache) in enumerate(pairs, start=1):
        if with_cache >= without_cache:
            pays = None
        elif pays is None:
            pays = number
    return pays


def total_exponent(step_seconds: Sequence[float], lengths: Sequence[int]) -> float:
    """The exponent with which generation time grows with the number of new tokens.

    It's the slope of a log-log line through the total times at `lengths`; 1 means proportional
    growth.
    Raises: ValueError for fewer than two lengths, or one beyond the steps.
    """
    if len(set(lengths)) < 2 or min(lengths) < 1 or max(lengths) > len(step_seconds):
        raise ValueError(f"lengths {list(lengths)} do not fit {len(step_seconds)} steps")
    cumulated = cumulative_seconds(step_seconds)
    return growth_exponent(lengths, [cumulated[length - 1] for length in lengths])
