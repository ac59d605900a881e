"""A measurement of generation, told as events: one compute slot for each step.

It can run in this process or in another one; whoever listens keeps what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from serving import compute
from serving.interruptions import Heartbeat
from serving.limits import MAX_TIMED_SECONDS, OverLimit
from serving.step_times import StepTime
from serving.timing import subjects
from serving.timing.subjects import UNROUNDED, Contender, TimingRequest

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.costs.step_times import Turn
    from pretrained import Pretrained
    from pretrained.untrained import Untrained

WARMING_UP, MEASURING = "warming up", "measuring"


@dataclass(frozen=True)
class Described:
    """The model is there. terms: constant, linear and quadratic operations of a decode step."""

    device: str
    n_prompt: int
    value_bytes: int
    terms: dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class WarmedUp:
    """The seconds of a first and of a last step of a contender, in the warm-up."""

    name: str
    first: float
    last: float


@dataclass(frozen=True)
class Doing:
    """What is done from now on."""

    what: str


@dataclass(frozen=True)
class Timed:
    """A step of a contender, and what the comparison with the others says after it.

    largest_difference: of two logits so far. parted: the first step at which a contender took
    another token.
    """

    repeat: int
    name: str
    step: StepTime
    largest_difference: float | None
    parted: dict[str, int]


Event = Described | WarmedUp | Doing | Timed


class LogitComparison:
    """The logits of contenders at the same place, as long as all have run the same tokens."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.largest_difference: float | None = None
        self.parted: dict[str, int] = {}  # contender -> first step with another token
        self._names = [name for name in names if name in UNROUNDED]  # others answer differently
        self._round: dict[str, tuple[int, Tensor]] = {}
        self._counts = dict[tuple[int, str], int]()

    def add(self, turn: Turn) -> None:
        """Take a step, and compare it with the others' at the same place once all have come."""
        place = self._counts.get((turn.repeat, turn.name), 0)
        self._counts[turn.repeat, turn.name] = place + 1
        if turn.name not in self._names:
            return
        self._round[turn.name] = turn.step.token_id, turn.step.logits
        if len(self._round) == len(self._names):
            self._compare(place)
            self._round = {}

    def _compare(self, place: int) -> None:
        first, *others = self._names
        token_id, logits = self._round[first]
        for name in others:
            if place > self.parted.get(name, place):
                continue  # they answer different questions by now
            other_id, other = self._round[name]
            difference = float((logits - other).abs().max())
            if not math.isnan(self.largest_difference or 0.0):  # once no number, never one again
                self.largest_difference = max(difference, self.largest_difference or 0.0)
            if other_id != token_id:
                self.parted[name] = min(place, self.parted.get(name, place))


def measure(question: TimingRequest, check_stop: Callable[[int], None]) -> Iterator[Event]:
    """Generate with every contender in turn.

    check_stop: called before every layer of every pass; what it raises ends the measurement.
    Raises: OverLimit or ValueError for a question that cannot be run; errors as of `models.get`.
    """
    question.check()
    model = _load(question)
    check_stop(0)
    ids = subjects.prompt_ids(model, question.prompt, question.n_new)
    yield _described(model, question, ids)
    last = len(ids) + question.n_new - 1  # tokens of the longest pass
    contenders = subjects.contenders(model, question.contenders, last, check_stop)
    yield Doing(WARMING_UP)
    yield from _warm_up(question, contenders, ids)
    yield Doing(MEASURING)
    yield from _steps(question, contenders, ids)


def _load(question: TimingRequest) -> Pretrained | Untrained:
    """The model and its twin in transformers; ValueError where that is not to be had."""
    try:
        model = subjects.load(question.model)
        if any(name.startswith("transformers") for name in question.contenders):
            subjects.reference(model)  # read from its files before anything is timed
    except ImportError as error:
        raise ValueError(f"This needs transformers, which is not installed: {error}") from error
    return model


def _described(
    model: Pretrained | Untrained, question: TimingRequest, ids: tuple[int, ...]
) -> Described:
    from attention_core.costs.step_times import flops_terms

    return Described(
        device=f"{model.device}, {str(model.dtype).removeprefix('torch.')}",
        n_prompt=len(ids),
        value_bytes=model.dtype.itemsize,
        terms={
            name: flops_terms(model.core.config, cached=name in subjects.CACHED)
            for name in question.contenders
        },
    )


def _warm_up(
    question: TimingRequest, contenders: Mapping[str, Contender], ids: tuple[int, ...]
) -> Iterator[WarmedUp]:
    """Both kinds of pass of each contender, dropped, and a first look at what they take.

    Without a cache the longest pass runs too: between it and the shortest lies every step.
    """
    longest = (*ids, *[ids[-1]] * (question.n_new - 1))
    expected = 0.0
    for name, contender in contenders.items():
        steps = contender.start(ids, 2)
        with compute.slot(exclusive=True):
            next(steps)
        with compute.slot(exclusive=True):
            first = last = next(steps).seconds
        if not contender.cached:
            with compute.slot(exclusive=True):
                last = next(contender.start(longest, 1)).seconds
        expected += expected_seconds(question, first, last)
        yield WarmedUp(name, first, last)
    if expected > MAX_TIMED_SECONDS:
        raise OverLimit(
            f"By its warm-up this would take about {expected / 60:.0f} minutes, and the limit "
            f"is {MAX_TIMED_SECONDS // 60}: others wait behind it. Ask for fewer new tokens, "
            "repeats or ways to generate."
        )


def expected_seconds(question: TimingRequest, first: float, last: float) -> float:
    """What all steps of a contender take if they grow evenly from the first to the last."""
    return question.n_new * (first + last) / 2 * question.repeats


def _steps(
    question: TimingRequest, contenders: Mapping[str, Contender], ids: tuple[int, ...]
) -> Iterator[Timed]:
    from attention_core.costs.step_times import in_turns

    starts = {
        name: partial(contender.start, ids, question.n_new)
        for name, contender in contenders.items()
    }
    steps = in_turns(starts, repeats=question.repeats, warmup_steps=0)
    comparison = LogitComparison(question.contenders)
    with Heartbeat() as heartbeat:
        # a pass of another page goes in between
        for timed, still in compute.steps(heartbeat.watched(steps), exclusive=True, seconds=0):
            comparison.add(timed)
            yield Timed(
                timed.repeat,
                timed.name,
                StepTime.of(timed.step, still),
                comparison.largest_difference,
                dict(comparison.parted),
            )
