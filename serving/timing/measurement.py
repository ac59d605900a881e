"""Measures the time of generation; every step runs in its own compute slot.

The results are a stream of events, so a measurement can run in this process or on a model server.
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
from serving.timing import timed_contenders
from serving.timing.timed_contenders import FULL_PRECISION, Contender, TimingRequest

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core.costs.step_times import ContenderStep
    from pretrained import Pretrained
    from pretrained.untrained import UntrainedModel

WARMING_UP, MEASURING = "warming up", "measuring"


@dataclass(frozen=True)
class ModelReady:
    """The model is loaded. terms: constant, linear and quadratic operations of a decode step."""

    device: str
    n_prompt: int
    value_bytes: int
    terms: dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class WarmUpTimes:
    """Seconds of a contender's first and last step, measured during the warm-up."""

    name: str
    first: float
    last: float


@dataclass(frozen=True)
class PhaseStarted:
    """The current phase: `WARMING_UP` or `MEASURING`."""

    phase: str


@dataclass(frozen=True)
class TimedStep:
    """A step of a contender, and how the contenders compare after it.

    largest_difference: between two logits so far. parted: for each contender that chose a different
    token, the first step at which it did.
    """

    repeat: int
    name: str
    step: StepTime
    largest_difference: float | None
    parted: dict[str, int]


Event = ModelReady | WarmUpTimes | PhaseStarted | TimedStep


class LogitComparison:
    """Compares the contenders' logits at each step as long as their tokens are the same."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.largest_difference: float | None = None
        self.parted: dict[str, int] = {}  # contender -> first step with a different token
        self._names = [
            name for name in names if name in FULL_PRECISION
        ]  # rounded weights may differ
        self._round: dict[str, tuple[int, Tensor]] = {}
        self._counts = dict[tuple[int, str], int]()

    def add(self, turn: ContenderStep) -> None:
        """Add a step, and compare it with the other contenders' once all have reached it."""
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
                continue  # their texts differ, so their logits can't be compared
            other_id, other = self._round[name]
            difference = float((logits - other).abs().max())
            if not math.isnan(self.largest_difference or 0.0):  # NaN stays NaN
                self.largest_difference = max(difference, self.largest_difference or 0.0)
            if other_id != token_id:
                self.parted[name] = min(place, self.parted.get(name, place))


def measure(question: TimingRequest, check_stop: Callable[[int], None]) -> Iterator[Event]:
    """Generate with all contenders, alternating between them.

    check_stop: called before every layer of every pass; an error it raises ends the measurement.
    Raises: OverLimit or ValueError for a request that can't be run; the errors of `models.get`.
    """
    question.check()
    model = _load(question)
    check_stop(0)
    ids = timed_contenders.prompt_ids(model, question.prompt, question.n_new)
    yield _model_ready(model, question, ids)
    last = len(ids) + question.n_new - 1  # tokens of the longest pass
    contenders = timed_contenders.contenders(model, question.contenders, last, check_stop)
    yield PhaseStarted(WARMING_UP)
    yield from _warm_up(question, contenders, ids)
    yield PhaseStarted(MEASURING)
    yield from _steps(question, contenders, ids)


def _load(question: TimingRequest) -> Pretrained | UntrainedModel:
    """Load the model, and its transformers counterpart if needed; ValueError if that fails."""
    try:
        model = timed_contenders.load(question.model)
        if any(name.startswith("transformers") for name in question.contenders):
            timed_contenders.reference(model)  # load it before the timing starts
    except ImportError as error:
        raise ValueError(
            f"This needs transformers, which isn't installed ({error}). Install it, or choose only "
            "ways to generate that use the core."
        ) from error
    return model


def _model_ready(
    model: Pretrained | UntrainedModel, question: TimingRequest, ids: tuple[int, ...]
) -> ModelReady:
    from attention_core.costs.step_times import flops_terms

    return ModelReady(
        device=f"{model.device}, {str(model.dtype).removeprefix('torch.')}",
        n_prompt=len(ids),
        value_bytes=model.dtype.itemsize,
        terms={
            name: flops_terms(model.core.config, cached=name in timed_contenders.CACHED)
            for name in question.contenders
        },
    )


def _warm_up(
    question: TimingRequest, contenders: Mapping[str, Contender], ids: tuple[int, ...]
) -> Iterator[WarmUpTimes]:
    """Run and time both kinds of passes of each contender once before the measurement.

    Without a cache, the longest pass runs, too, because the duration of every other step is between
    that of the longest and the shortest pass.
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
        yield WarmUpTimes(name, first, last)
    if expected > MAX_TIMED_SECONDS:
        raise OverLimit(
            f"This measurement would take about {expected / 60:.0f} minutes. The limit is "
            f"{MAX_TIMED_SECONDS // 60} minutes, because other visitors have to wait. Choose fewer "
            "new tokens, repeats or ways to generate."
        )


def expected_seconds(question: TimingRequest, first: float, last: float) -> float:
    """The total time of a contender's steps if they grow linearly from the first to the last."""
    return question.n_new * (first + last) / 2 * question.repeats


def _steps(
    question: TimingRequest, contenders: Mapping[str, Contender], ids: tuple[int, ...]
) -> Iterator[TimedStep]:
    from attention_core.costs.step_times import interleave_steps

    starts = {
        name: partial(contender.start, ids, question.n_new)
        for name, contender in contenders.items()
    }
    steps = interleave_steps(starts, repeats=question.repeats, warmup_steps=0)
    comparison = LogitComparison(question.contenders)
    with Heartbeat() as heartbeat:
        # seconds=0 lets other pages run passes between the steps
        for timed, still in compute.steps(
            heartbeat.measure_stalls(steps), exclusive=True, seconds=0
        ):
            comparison.add(timed)
            yield TimedStep(
                timed.repeat,
                timed.name,
                StepTime.from_step(timed.step, still),
                comparison.largest_difference,
                dict(comparison.parted),
            )
