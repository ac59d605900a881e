"""A training run as a job that can be paused.

Runs are cached, and each visitor keeps the number of a run. Pausing ends the job and frees its
queue position and compute slot; resuming starts a new job with the same run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pages.learn.watch_heads_form.recording import EVERY, TrainingHistory, TrainingSettings, moment
from serving import compute
from serving.cache import cached
from serving.jobs import BackgroundJob
from serving.limits import MAX_FORMING_STEPS, MIB

if TYPE_CHECKING:
    from pages.learn.watch_heads_form.experiment.training import HeadTraining

# 39,000 weights, their gradients and AdamW's two averages take 0.6 MB; 81 moments of 16 maps with
# 32 x 32 unmasked weights, one byte each, take 1.3 MB.
RUN_BYTES = 2 * MIB

_numbers = itertools.count(1)


def _never_stop() -> None:
    """Do nothing: a run without a job can't be stopped."""


class TrainingRun:
    """A model in training and its measurements; only the queue's worker changes it."""

    def __init__(self, settings: TrainingSettings) -> None:
        self.recording = TrainingHistory(settings)
        self._training: HeadTraining | None = None

    def begin(self, check_stop: Callable[[], None] = _never_stop) -> None:
        """Create the model if needed, and measure it if a measurement is due."""
        if self._training is None:
            self._training = self._new()
        self._measure(check_stop)

    def step(self, check_stop: Callable[[], None] = _never_stop) -> None:
        """Take one training step, and measure if a measurement is due."""
        assert self._training is not None
        self._training.step()
        self._measure(check_stop)

    @property
    def n_steps(self) -> int:
        """The number of steps taken so far."""
        return 0 if self._training is None else self._training.n_steps

    def _new(self) -> HeadTraining:
        from pages.learn.watch_heads_form.experiment.model import Design
        from pages.learn.watch_heads_form.experiment.sequences import (
            ONE_DISTANCE,
            TRAINED_DISTANCES,
        )
        from pages.learn.watch_heads_form.experiment.training import HeadTraining

        settings = self.recording.settings
        design = Design(settings.n_heads, settings.mask, settings.scale, settings.dropout)
        distances = ONE_DISTANCE if settings.one_distance else TRAINED_DISTANCES
        return HeadTraining(design, settings.seed, distances=distances)

    def _measure(self, check_stop: Callable[[], None]) -> None:
        """Measure before the first step and after every tenth, once each.

        Nothing is recorded if check_stop raises, so the picture of a paused run doesn't change.
        The missed measurement is made when the run resumes.
        """
        assert self._training is not None
        moments = self.recording.moments
        if self.n_steps % EVERY or (moments and moments[-1].step == self.n_steps):
            return
        causal = self.recording.settings.mask
        measurements = moment(self.n_steps, self._training.measure(), causal=causal)
        check_stop()
        moments.append(measurements)


@cached(key=lambda number, settings=None: number, size=lambda _: RUN_BYTES)
def run(number: int, settings: TrainingSettings) -> TrainingRun:
    """The run with this number, created if it's new."""
    return TrainingRun(settings)


@contextmanager
def _slot() -> Iterator[None]:
    """Take a compute slot, and use one core: a second thread slows such a small model down."""
    import torch

    with compute.slot():
        torch.set_num_threads(1)
        yield


def new_number() -> int:
    """A number for a new run."""
    return next(_numbers)


class FormingJob(BackgroundJob):
    """Continue a run until it ends or is stopped; every step takes a compute slot."""

    def __init__(self, number: int, settings: TrainingSettings) -> None:
        super().__init__()
        self.number, self.settings = number, settings

    def work(self) -> None:
        """Train on the worker's thread; a run evicted from the cache starts over."""
        current = run(self.number, self.settings)
        with _slot():
            current.begin(self.check_stop)
        while current.n_steps < MAX_FORMING_STEPS:
            self.check_stop()
            with _slot():
                current.step(self.check_stop)
