"""The measurement as a job, with one exclusive compute slot per step."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from pages.kv_cache.timing import timing_run
from pages.kv_cache.timing.timing_run import Recorder, TimingRun
from serving.backend import router as backend
from serving.jobs import BackgroundJob
from serving.timing import timed_contenders
from serving.timing.measurement import (
    ModelReady,
    PhaseStarted,
    TimedStep,
    WarmUpTimes,
    expected_seconds,
)
from serving.timing.timed_contenders import TimingRequest

WARM_UP_SECONDS = 30.0  # longest wait for models that load at startup


class TimingJob(BackgroundJob):
    """Time all contenders in turn; the worker writes and the page reads.

    after: a thread to wait for first, which loads models right after startup.
    Raises: OverLimit or ValueError for a request that can't be run.
    """

    def __init__(self, question: TimingRequest, *, after: threading.Thread | None = None) -> None:
        super().__init__()
        question.check()
        self.question = question
        self.is_collected = False  # whether the page has added it to the runs of the visit
        self._after = after
        self.recorder = Recorder(question.contenders, question.repeats)
        self.phase = "loading the model"
        self.device = ""
        self.n_prompt = 0
        self._expected: dict[str, tuple[float, float]] = {}  # seconds for the first and last step
        self._terms: dict[str, tuple[int, int, int]] = {}
        self._value_bytes = 0
        self._run: TimingRun | None = None

    @property
    def progress(self) -> float:
        """Share of the expected time that has passed, from 0 to 1; 0 during the warm-up."""
        total = self.expected_seconds
        return min(1.0, self._expected_so_far() / total) if total else 0.0

    @property
    def expected_seconds(self) -> float | None:
        """Expected time of all steps, from the warm-up; None before it is done."""
        if len(self._expected) < len(self.question.contenders):
            return None
        return sum(expected_seconds(self.question, *times) for times in self._expected.values())

    @property
    def remaining_seconds(self) -> float | None:
        """Expected time left, scaled by how long the steps so far really took."""
        total = self.expected_seconds
        if total is None:
            return None
        so_far = self._expected_so_far()
        took = sum(
            step.seconds
            for repeats in self.recorder.steps.values()
            for repeat in repeats
            for step in repeat
        )
        return (total - so_far) * (took / so_far if so_far > 0 else 1.0)

    def _expected_so_far(self) -> float:
        done = 0.0
        for name, (first, last) in self._expected.items():
            for repeat in self.recorder.steps[name]:
                n = len(repeat)
                done += n * first + (last - first) * n * n / 2 / self.question.n_new
        return done

    def work(self) -> None:
        """Run the measurement; called on the worker's thread."""
        self._wait()
        for event in backend.measure(self.question, self.check_stop):
            match event:
                case ModelReady():
                    self.device, self._terms = event.device, event.terms
                    self.n_prompt, self._value_bytes = event.n_prompt, event.value_bytes
                case WarmUpTimes():
                    self._expected[event.name] = event.first, event.last
                case PhaseStarted():
                    self.phase = event.phase
                case TimedStep():
                    event.step.count()
                    self.recorder.add(event)

    def _wait(self) -> None:
        """Wait for models that load right after startup."""
        if self._after is not None:
            until = time.monotonic() + WARM_UP_SECONDS
            while self._after.is_alive() and time.monotonic() < until:
                self._after.join(0.1)
                self.check_stop()

    def partial_run(self) -> TimingRun | None:
        """The result of a finished job: all complete repeats, or the steps of a partial first one.

        None if there are too few steps.
        """
        if self._run is None and not self.is_live:
            self._run = self._complete_run()
        return self._run

    def _complete_run(self) -> TimingRun | None:
        repeats, n = shape = timing_run.complete_block(self.recorder, self.question.n_new)
        if n < timing_run.MIN_STEPS:
            return None
        return TimingRun(
            question=self.question,
            device=self.device,
            ended=datetime.now(UTC),
            n_prompt=self.n_prompt,
            value_bytes=self._value_bytes,
            stopped=(repeats, n) != (self.question.repeats, self.question.n_new),
            series={
                name: timing_run.series(
                    self.recorder,
                    name,
                    shape,
                    cached=name in timed_contenders.CACHED,
                    terms=self._terms[name],
                )
                for name in self.question.contenders
            },
            largest_difference=self.recorder.largest_difference,
            parted=dict(self.recorder.parted),
            stalled_seconds=timing_run.stalled_seconds(self.recorder, shape),
        )
