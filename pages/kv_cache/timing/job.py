"""The measurement as a job: queued, watched, stopped, one turn of the machine for each step."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pages.kv_cache.timing import measured, subjects
from pages.kv_cache.timing.measured import Recorder, Run
from pages.kv_cache.timing.subjects import Contender, Question
from serving import turns
from serving.jobs import Work
from serving.limits import MAX_TIMED_SECONDS, OverLimit

if TYPE_CHECKING:
    from pretrained import Pretrained
    from pretrained.untrained import Untrained

WARM_UP_SECONDS = 30.0  # how long a measurement waits for models that load at the start


class TimingJob(Work):
    """Generate with every contender in turn. The worker writes, the page reads.

    `after`: other work, the loading of models right after a start, that is let finish first.
    Raises: OverLimit or ValueError for a question that cannot be run.
    """

    def __init__(self, question: Question, *, after: threading.Thread | None = None) -> None:
        super().__init__()
        question.check()
        self.question = question
        self.collected = False  # by the page, into the runs of the visit
        self._after = after
        self.recorder = Recorder(question.contenders, question.repeats)
        self.doing = "loading the model"
        self.device = ""
        self.n_prompt = 0
        self._expected: dict[str, tuple[float, float]] = {}  # seconds of a first and a last step
        self._terms: dict[str, tuple[int, ...]] = {}
        self._value_bytes = 0
        self._run: Run | None = None

    @property
    def progress(self) -> float:
        """The share of the expected time that is done, 0 to 1; 0 while it is warming up."""
        total = self.expected_seconds
        return min(1.0, self._expected_so_far() / total) if total else 0.0

    @property
    def expected_seconds(self) -> float | None:
        """What the steps should take by the warm-up alone; None before it is done."""
        if len(self._expected) < len(self.question.contenders):
            return None
        n = self.question.n_new
        return sum(n * (a + b) / 2 for a, b in self._expected.values()) * self.question.repeats

    @property
    def remaining_seconds(self) -> float | None:
        """What is left, the expectation corrected by how the steps so far compare with it."""
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
        """Measure, on the worker's thread."""
        model = self._load()
        self.check_stop()
        ids = subjects.prompt_ids(model, self.question.prompt, self.question.n_new)
        self._describe(model, ids)
        last = len(ids) + self.question.n_new - 1  # tokens of the longest pass
        contenders = subjects.contenders(model, self.question.contenders, last, self.check_stop)
        self.doing = "warming up"
        self._warm_up(contenders, ids)
        self.doing = "measuring"
        self._measure(contenders, ids)

    def _load(self) -> Pretrained | Untrained:
        """The model and its twin in transformers; ValueError where that is not to be had."""
        if self._after is not None:
            until = time.monotonic() + WARM_UP_SECONDS
            while self._after.is_alive() and time.monotonic() < until:
                self._after.join(0.1)
                self.check_stop()
        try:
            model = subjects.load(self.question.model)
            if any(name.startswith("transformers") for name in self.question.contenders):
                _ = model.reference  # read from its files before anything is timed
        except ImportError as error:
            raise ValueError(f"This needs transformers, which is not installed: {error}") from error
        return model

    def _describe(self, model: Pretrained | Untrained, ids: tuple[int, ...]) -> None:
        from attention_core.costs.step_times import flops_terms

        self.device = f"{model.device}, {str(model.dtype).removeprefix('torch.')}"
        self.n_prompt, self._value_bytes = len(ids), model.dtype.itemsize
        for name in self.question.contenders:
            self._terms[name] = flops_terms(model.core.config, cached=name in subjects.CACHED)

    def _warm_up(self, contenders: Mapping[str, Contender], ids: tuple[int, ...]) -> None:
        """Both kinds of pass of each contender, dropped, and a first look at what they take.

        Without a cache the longest pass runs too: between it and the shortest lies every step.
        """
        longest = (*ids, *[ids[-1]] * (self.question.n_new - 1))
        for name, contender in contenders.items():
            steps = contender.start(ids, 2)
            with turns.turn():
                next(steps)
            with turns.turn():
                first = last = next(steps).seconds
            if not contender.cached:
                with turns.turn():
                    last = next(contender.start(longest, 1)).seconds
            self._expected[name] = first, last
        expected = self.expected_seconds or 0.0
        if expected > MAX_TIMED_SECONDS:
            raise OverLimit(
                f"By its warm-up this would take about {expected / 60:.0f} minutes, and the limit "
                f"is {MAX_TIMED_SECONDS // 60}: others wait behind it. Ask for fewer new tokens, "
                "repeats or ways to generate."
            )

    def _measure(self, contenders: Mapping[str, Contender], ids: tuple[int, ...]) -> None:
        from attention_core.costs.step_times import in_turns

        starts = {
            name: partial(contender.start, ids, self.question.n_new)
            for name, contender in contenders.items()
        }
        steps = in_turns(starts, repeats=self.question.repeats, warmup_steps=0)
        for step in turns.each(steps):  # a pass of another page goes in between
            self.recorder.add(step)

    def run_so_far(self) -> Run | None:
        """What was measured, once the job is over: whole repeats, or the part of a first one.

        None where that is too little to say anything.
        """
        if self._run is None and not self.live:
            self._run = self._block()
        return self._run

    def _block(self) -> Run | None:
        repeats, n = shape = measured.block(self.recorder, self.question.n_new)
        if n < measured.MIN_STEPS:
            return None
        return Run(
            question=self.question,
            device=self.device,
            ended=datetime.now(UTC),
            n_prompt=self.n_prompt,
            value_bytes=self._value_bytes,
            stopped=(repeats, n) != (self.question.repeats, self.question.n_new),
            series={
                name: measured.series(
                    self.recorder,
                    name,
                    shape,
                    cached=name in subjects.CACHED,
                    terms=self._terms[name],
                )
                for name in self.question.contenders
            },
            largest_difference=self.recorder.largest_difference,
            parted=dict(self.recorder.parted),
        )
