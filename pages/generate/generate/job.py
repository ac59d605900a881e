"""Cached against uncached generation as a job: queued, timed, watched and stopped.

Nothing here touches Streamlit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from serving import models
from serving.backend import router as backend
from serving.jobs import JobQueue, Work
from serving.race import Begun, CacheSize, Ended, RaceRequest, RaceStep
from serving.step_times import StepTime
from serving.token_text import END_OF_TEXT, decode, pieces, text_so_far

if TYPE_CHECKING:
    from pretrained import Tokenizer


@dataclass
class GenerationSteps:
    """The steps of one of the two generations, in order.

    ends: for each step, how many characters of the new text are written after it.
    """

    steps: list[StepTime] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @property
    def token_ids(self) -> list[int]:
        """The new tokens so far."""
        return [step.token_id for step in self.steps]

    @property
    def seconds(self) -> float:
        """Time of all model calls, the prefill included."""
        return sum(step.seconds for step in self.steps)

    @property
    def prefill_seconds(self) -> float | None:
        """Time of the first pass: the time to the first token. None before it is done."""
        return self.steps[0].seconds if self.steps else None

    @property
    def decode_seconds(self) -> list[float]:
        """Time of every step after the first."""
        return [step.seconds for step in self.steps[1:]]

    @property
    def median_decode_seconds(self) -> float | None:
        """Median time of a decode step; None while there is none."""
        times = self.decode_seconds
        return median(times) if times else None


class Job(Work):
    """One request and what has become of it. The worker writes, the page reads."""

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
        """Time without the cache over time with it, prefill included, for the same steps.

        None before the first decode step: the prefill is the same work with a cache and without.
        None as well once the process stood still during a step.
        """
        if self.stood_still:
            return None
        steps = min(len(self.cached.steps), len(self.uncached.steps))
        if steps < 2:
            return None
        without = sum(step.seconds for step in self.uncached.steps[:steps])
        return without / sum(step.seconds for step in self.cached.steps[:steps])

    @property
    def stood_still(self) -> float:
        """For how many seconds the process stood still while steps were timed."""
        return sum(step.stood_still for run in (self.cached, self.uncached) for step in run.steps)

    @property
    def same_tokens(self) -> bool | None:
        """Whether the runs agree as far as both have come; None before the first token."""
        pairs = list(zip(self.cached.token_ids, self.uncached.token_ids, strict=False))
        return all(one == other for one, other in pairs) if pairs else None

    def text(self, run: GenerationSteps) -> str:
        """The new text of one of the two runs."""
        return self._text(run.token_ids)

    def _text(self, ids: list[int]) -> str:
        if self._tokenizer is None:
            return ""
        if ids and ids[-1] in self._tokenizer.end_ids:
            return decode(self._tokenizer, ids[:-1]) + END_OF_TEXT
        return text_so_far(self._tokenizer, ids)

    def pieces(self, run: GenerationSteps) -> tuple[str, ...]:
        """Each new token by itself, everything invisible made visible."""
        return () if self._tokenizer is None else pieces(self._tokenizer, run.token_ids)

    def work(self) -> None:
        """Generate, on the worker's thread."""
        self._tokenizer = models.get(self.request.model).tokenizer
        for event in backend.race(self.request, self.check_stop):
            if isinstance(event, Begun):
                self.device = event.device
            elif isinstance(event, Ended):
                self.notice = event.notice
            else:
                self._keep(event)

    def _keep(self, step: RaceStep) -> None:
        so_far = self.largest_difference or 0.0
        # after different tokens the logits answer different questions; once no number, never one
        if self.same_tokens is not False and not math.isnan(so_far):
            self.largest_difference = max(step.difference, so_far)
        # the uncached list first: a reader that finds a cached step finds its partner too
        for run, taken in ((self.uncached, step.uncached), (self.cached, step.cached)):
            run.ends.append(len(self._text([*run.token_ids, taken.token_id])))
            run.steps.append(taken)
            taken.count()
        self.cache_size = step.cache_size


def submit(
    queue: JobQueue,
    request: RaceRequest,
    *,
    instead_of: Job | None = None,
    owner: str | None = None,
    address: str | None = None,
) -> Job:
    """Queue a request; `instead_of`, `owner` and `address` as of `JobQueue.put`.

    Raises: OverLimit if the queue is full, the prompt too long, or the number of tokens out of
    range; the earlier job then goes on.
    """
    request.check()
    job = Job(request)
    queue.put(job, instead_of=instead_of, owner=owner, address=address)
    return job
