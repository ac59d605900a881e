"""What a step of generation takes, against its position: measured in turns, fitted, and counted.

Without a cache, step n runs all n tokens: its operations are a polynomial of degree 2 in n, and the
whole generation's one of degree 3, until short texts hide it behind the reading of the weights.
With one, a step's are of degree 1. Time follows where arithmetic is what takes the time.
Source: course notes, "KV cache": 6.77 s without it against 2.0 s with it.
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

WARM_UP = -1  # the repeat of steps that are to be dropped


@dataclass(frozen=True)
class Turn:
    """One step of one contender; `repeat` counts from 0, or is `WARM_UP`."""

    repeat: int
    name: str
    step: Step


def in_turns(
    contenders: Mapping[str, Callable[[], Iterator[Step]]], *, repeats: int, warmup_steps: int = 2
) -> Iterator[Turn]:
    """Take one step of each contender in turn, so that a busy moment falls on all of them.

    Every repeat starts all of them anew. Who is first changes from step to step and from repeat to
    repeat. A contender that ends before the others is left out from there on. One step runs for
    each item that is taken from the iterator. The warm-up comes first: two steps are a prefill and
    a decode step.
    Raises: ValueError for no contender, fewer than 1 repeat, or a negative number of steps.
    """
    if not contenders or repeats < 1 or warmup_steps < 0:
        raise ValueError(
            f"{len(contenders)} contenders, {repeats} repeats, {warmup_steps} warm-up steps: at "
            "least 1, 1 and 0 are needed"
        )
    return _turns(contenders, repeats, warmup_steps)


def _turns(
    contenders: Mapping[str, Callable[[], Iterator[Step]]], repeats: int, warmup_steps: int
) -> Iterator[Turn]:
    for name, start in contenders.items():
        for step in itertools.islice(start(), warmup_steps):
            yield Turn(WARM_UP, name, step)
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
                    yield Turn(repeat, name, next_step)
            if not running:
                break


@dataclass(frozen=True)
class Coefficient:
    """A fitted coefficient and its standard error."""

    value: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether it lies more than two standard errors away from zero."""
        return abs(self.value) > 2 * self.error


@dataclass(frozen=True)
class Fit:
    """Seconds of a step with n tokens before and in it: constant + linear n + quadratic n^2."""

    constant: Coefficient
    linear: Coefficient
    quadratic: Coefficient

    def at(self, n: float) -> float:
        """The fitted seconds at n tokens."""
        return self.constant.value + n * (self.linear.value + n * self.quadratic.value)


def fit_step_times(n_tokens: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Least squares through the times of steps, with the usual standard errors.

    These hold for independent deviations of equal size; give one value a position (the median of
    its repeats), not several.
    Raises: ValueError for fewer than 5 positions, or series of different lengths.
    """
    if len(n_tokens) != len(seconds) or len(set(n_tokens)) < 5:
        raise ValueError(
            f"{len(set(n_tokens))} different positions with {len(seconds)} times: a fit of three "
            "terms needs 5 positions, with one time each"
        )
    n = torch.tensor(n_tokens, dtype=torch.float64)
    y = torch.tensor(seconds, dtype=torch.float64)
    scale = float(n.abs().max())  # powers of numbers up to 1 keep the problem well conditioned
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
    """The operations of one decode step as constant, linear and quadratic term in n, exactly.

    n counts all tokens so far, the newest included; `forward_flops` gives the values.
    Raises: ValueError for a model with a window, whose operations are no polynomial.
    """
    if config.window is not None:
        raise ValueError(f"with a window of {config.window} a step's cost is no polynomial")
    at_1, at_2, at_3 = (forward_flops(config, 1 if cached else n, n) for n in (1, 2, 3))
    quadratic = (at_3 - 2 * at_2 + at_1) // 2
    linear = at_2 - at_1 - 3 * quadratic
    return at_1 - linear - quadratic, linear, quadratic


def totals(step_seconds: Sequence[float]) -> tuple[float, ...]:
    """Seconds of the first 1, 2, ... steps together."""
    return tuple(itertools.accumulate(step_seconds))


def pays_from(cached: Sequence[float], uncached: Sequence[float]) -> int | None:
    """From how many new tokens on the cached run is ahead for good; None if it ends behind.

    Both are seconds a step, the prefill first. Raises: ValueError for different lengths.
    """
    if len(cached) != len(uncached):
        raise ValueError(f"{len(cached)} cached steps beside {len(uncached)} uncached ones")
    pays = None
    pairs = zip(totals(cached), totals(uncached), strict=True)
    for number, (with_cache, without_cache) in enumerate(pairs, start=1):
        if with_cache >= without_cache:
            pays = None
        elif pays is None:
            pays = number
    return pays


def total_exponent(step_seconds: Sequence[float], lengths: Sequence[int]) -> float:
    """The power with which the time of a generation grows with its number of new tokens.

    The slope of a line through the logarithms of the totals at `lengths`; 1 is in proportion.
    Raises: ValueError for fewer than two lengths, or one beyond the steps.
    """
    if len(set(lengths)) < 2 or min(lengths) < 1 or max(lengths) > len(step_seconds):
        raise ValueError(f"lengths {list(lengths)} do not fit {len(step_seconds)} steps")
    cumulated = totals(step_seconds)
    return growth_exponent(lengths, [cumulated[length - 1] for length in lengths])
