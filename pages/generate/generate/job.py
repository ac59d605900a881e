"""A job that generates a text with and without a KV cache and times both runs.

This module doesn't use Streamlit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from serving import models
from serving.backend import router as backend
from serving.jobs import BackgroundJob, JobQueue
from serving.race import CacheSize, RaceEnded, RaceRequest, RaceStarted, RaceStep
from serving.step_times import StepTime
from serving.token_text import END_OF_TEXT, decode, decode_partial, pieces

if TYPE_CHECKING:
    from pretrained import Tokenizer


@dataclass
class GenerationSteps:
    """The steps of one of the two runs, in order.

    text_lengths: length of the new text after each step, in characters.
    """

    steps: list[StepTime] = field(default_factory=list)
    text_lengths: list[int] = field(default_factory=list)

    @property
    def token_ids(self) -> list[int]:
        """IDs of the new tokens so far."""
        return [step.token_id for step in self.steps]

    @property
    def seconds(self) -> float:
        """Total time of the model calls, prefill included."""
        return sum(step.seconds for step in self.steps)

    @property
    def prefill_seconds(self) -> float | None:
        """Time to the first token, or None before the prefill is done."""
        return self.steps[0].seconds if self.steps else None

    @property
    def decode_seconds(self) -> list[float]:
        """Time of each step after the prefill."""
        return [step.seconds for step in self.steps[1:]]

    @property
    def median_decode_seconds(self) -> float | None:
        """Median time of a decode step, or None before the first one."""
        times = self.decode_seconds
        return median(times) if times else None


class GenerationJob(BackgroundJob):
    """A generation request and its results; the worker writes and the page reads."""

    def __init__(self, request: RaceRequest) -> None:
        super().__init__()
        self.request = request
        self.notice = ""
        self.device = ""
        self.cached = GenerationSteps()
        self.uncached = GenerationSteps()
        self.largest_difference: float | None = None
        self.cache_size: CacheSize | None = None
        self._tokenizer: Tokenizer | None = None

    @property
    def speed_up(self) -> float | None:
        """Total time without the cache divided by total time with it, prefill included.

        Both totals cover the same number of steps. None before the first decode step, because the
        prefill is the same work for both runs. None if the process stalled during a step.
        """
        if self.stalled_seconds:
            return None
        steps = min(len(self.cached.steps), len(self.uncached.steps))
        if steps < 2:
            return None
        without = sum(step.seconds for step in self.uncached.steps[:steps])
        return without / sum(step.seconds for step in self.cached.steps[:steps])

    @property
    def stalled_seconds(self) -> float:
        """Seconds for which the process stalled during timed steps."""
        return sum(
            step.stalled_seconds for run in (self.cached, self.uncached) for step in run.steps
        )

    @property
    def same_tokens(self) -> bool | None:
        """Whether both runs chose the same tokens so far; None before the first token."""
        pairs = list(zip(self.cached.token_ids, self.uncached.token_ids, strict=False))
        return all(one == other for one, other in pairs) if pairs else None

    def text(self, run: GenerationSteps) -> str:
        """The new text of a run."""
        return self._text(run.token_ids)

    def _text(self, ids: list[int]) -> str:
        if self._tokenizer is None:
            return ""
        if ids and ids[-1] in self._tokenizer.end_ids:
            return decode(self._tokenizer, ids[:-1]) + END_OF_TEXT
        return decode_partial(self._tokenizer, ids)

    def pieces(self, run: GenerationSteps) -> tuple[str, ...]:
        """The text of each new token, with invisible characters made visible."""
        return () if self._tokenizer is None else pieces(self._tokenizer, run.token_ids)

    def work(self) -> None:
        """Generate both texts; called on the worker's thread."""
        self._tokenizer = models.get(self.request.model).tokenizer
        for event in backend.race(self.request, self.check_stop):
            if isinstance(event, RaceStarted):
                self.device = event.device
            elif isinstance(event, RaceEnded):
                self.notice = event.notice
            else:
                self._store(event)

    def _store(self, step: RaceStep) -> None:
        so_far = self.largest_difference or 0.0
        # logits are only comparable after the same tokens; once the difference is NaN, it stays NaN
        if self.same_tokens is not False and not math.isnan(so_far):
            self.largest_difference = max(step.difference, so_far)
        # append to the uncached run first, so a reader of a cached step always finds its partner
        for run, taken in ((self.uncached, step.uncached), (self.cached, step.cached)):
            run.text_lengths.append(len(self._text([*run.token_ids, taken.token_id])))
            run.steps.append(taken)
            taken.count()
        self.cache_size = step.cache_size


def submit(
    queue: JobQueue,
    request: RaceRequest,
    *,
    replaces: GenerationJob | None = None,
    owner: str | None = None,
    address: str | None = None,
) -> GenerationJob:
    """Queue a generation request and return its job.

    replaces, owner, address: as in `JobQueue.put`.
    Raises: OverLimit if the queue is full, the prompt is too long, or the number of tokens is out
    of range. The earlier job then keeps running.
    """
    request.check()
    job = GenerationJob(request)
    queue.put(job, replaces=replaces, owner=owner, address=address)
    return job
