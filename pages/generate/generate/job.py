"""Cached against uncached generation as a job: queued, timed, watched and stopped.

The worker takes the two runs step by step in turn, on the same thread. Nothing here touches
Streamlit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from serving import models, quantized, turns
from serving.jobs import JobQueue, Work
from serving.limits import MAX_NEW_TOKENS, MAX_PROMPT_TOKENS, OverLimit, check_text
from serving.prompts import prepare
from serving.step_times import StepTime
from serving.token_text import END_OF_TEXT

if TYPE_CHECKING:
    from attention_core import KVCache, Sampling, Step, TransformerConfig
    from pretrained import Tokenizer


@dataclass(frozen=True)
class Request:
    """What a visitor asked for."""

    model: str
    prompt: str
    max_new_tokens: int
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    weights: quantized.Weights = "float32"

    @property
    def summary(self) -> str:
        """The settings in a line, so that what is shown cannot be mistaken for another run's."""
        parts = [self.model, f"{self.max_new_tokens} new tokens"]
        if self.weights != "float32":
            parts.insert(1, f"weights in {self.weights}")
        if self.temperature == 0:
            return ", ".join([*parts, "the likeliest token each time"])
        parts.append(f"temperature {self.temperature:g}")
        if self.top_k is not None:
            parts.append(f"top-k {self.top_k}")
        if self.top_p is not None:
            parts.append(f"top-p {self.top_p:g}")
        return ", ".join([*parts, f"seed {self.seed}"])

    def sampling(self) -> Sampling:
        """The sampling of the core; ValueError for values out of range."""
        from attention_core import Sampling

        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


@dataclass
class Run:
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


@dataclass(frozen=True)
class CacheSize:
    """Bytes of stored keys and values: of the cache's own tensors, and by the lectures' formula."""

    measured: int
    formula: int


def cache_size(cache: KVCache, config: TransformerConfig) -> CacheSize:
    """The size of what a cache holds now, and by the formula of the model's kind of attention.

    Layers x batch x key/value heads x head size x tokens x 2 x bytes a value; latents and windows
    have formulas of their own (`attention_core.costs.formulas.cache_bytes`).
    """
    from attention_core import cache_bytes

    keys, _ = cache.layer(0)
    formula = cache_bytes(
        config, cache.length, batch_size=cache.batch_size, bytes_per_value=keys.element_size()
    )
    return CacheSize(cache.nbytes_used, formula)


class Job(Work):
    """One request and what has become of it. The worker writes, the page reads."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request
        self.notice = ""
        self.device = ""
        self.cached = Run()
        self.uncached = Run()
        self.largest_difference: float | None = None
        self.cache_size: CacheSize | None = None
        self._tokenizer: Tokenizer | None = None

    @property
    def speed_up(self) -> float | None:
        """Time without the cache over time with it, prefill included, for the same steps.

        None before the first decode step: the prefill is the same work with a cache and without.
        """
        steps = min(len(self.cached.steps), len(self.uncached.steps))
        if steps < 2:
            return None
        without = sum(step.seconds for step in self.uncached.steps[:steps])
        return without / sum(step.seconds for step in self.cached.steps[:steps])

    @property
    def same_tokens(self) -> bool | None:
        """Whether the runs agree as far as both have come; None before the first token."""
        pairs = list(zip(self.cached.token_ids, self.uncached.token_ids, strict=False))
        return all(one == other for one, other in pairs) if pairs else None

    def text(self, run: Run) -> str:
        """The new text of one of the two runs."""
        return self._decoded(run.token_ids)

    def _decoded(self, ids: list[int]) -> str:
        if self._tokenizer is None or not ids:
            return ""
        if ids[-1] in self._tokenizer.end_ids:
            return self._tokenizer.decode(ids[:-1]) + END_OF_TEXT
        return self._tokenizer.decode(ids)

    def pieces(self, run: Run) -> list[str]:
        """The text of each new token by itself."""
        tokenizer = self._tokenizer
        if tokenizer is None:
            return []
        return [
            END_OF_TEXT if token_id in tokenizer.end_ids else tokenizer.decode([token_id])
            for token_id in run.token_ids
        ]

    def work(self) -> None:
        """Generate, on the worker's thread."""
        from attention_core import Hooks, generate, stream

        request, sampling = self.request, self.request.sampling()
        model = models.get(request.model)
        self.check_stop(0)
        self._tokenizer = model.tokenizer
        core = quantized.core(request.model, request.weights)
        dtype = str(model.dtype).removeprefix("torch.")
        self.device = f"{model.device}, {request.weights if request.weights == 'int8' else dtype}"
        prompt = prepare(
            model, request.prompt, MAX_PROMPT_TOKENS, "a prompt", request.max_new_tokens
        )
        ids, n_new, self.notice = prompt.ids, prompt.n_new, prompt.note
        # the last new token is never run itself
        cache = core.new_cache(1, len(ids) + n_new - 1)
        hooks = Hooks(before_layer=self.check_stop)
        options: dict[str, Any] = {
            "max_new_tokens": n_new,
            "sampling": sampling,
            "stop_ids": model.tokenizer.end_ids,
            "hooks": hooks,
        }
        # Warm-up: the same passes once before they are timed, so that neither run goes first.
        few = min(n_new, 2)  # a prefill and a decode step
        with turns.turn():
            generate(core, ids, max_new_tokens=few, cache=cache, hooks=hooks)
            generate(core, ids, max_new_tokens=1, hooks=hooks)
        cache.reset()
        with_cache = stream(core, ids, cache=cache, **options)
        without = stream(core, ids, cache=None, **options)
        for step in range(n_new):
            # taking turns in going first, so that neither always pays for what the other evicted
            with turns.turn():
                if step % 2:
                    other, one = next(without, None), next(with_cache, None)
                else:
                    one, other = next(with_cache, None), next(without, None)
            if one is None or other is None:
                both = one is None and other is None
                self.notice = f"{'The model' if both else 'One run'} ended its text here."
                return
            self._keep(one, other)
            self.cache_size = cache_size(cache, core.config)

    def _keep(self, one: Step, other: Step) -> None:
        if (
            self.same_tokens is not False
        ):  # after different tokens the logits answer different questions
            difference = float((one.logits - other.logits).abs().max())
            if not math.isnan(self.largest_difference or 0.0):  # once no number, never one again
                self.largest_difference = max(difference, self.largest_difference or 0.0)
        # the uncached list first: a reader that finds a cached step finds its partner too
        for run, step in ((self.uncached, other), (self.cached, one)):
            run.ends.append(len(self._decoded([*run.token_ids, step.token_id])))
            run.steps.append(StepTime.of(step))


def submit(
    queue: JobQueue,
    request: Request,
    *,
    instead_of: Job | None = None,
    owner: str | None = None,
) -> Job:
    """Queue a request; `instead_of` and `owner` as of `JobQueue.put`.

    Raises: OverLimit if the queue is full, the prompt too long, or the number of tokens out of
    range; the earlier job then goes on.
    """
    if not 1 <= request.max_new_tokens <= MAX_NEW_TOKENS:
        raise OverLimit(f"Ask for 1 to {MAX_NEW_TOKENS} new tokens, not {request.max_new_tokens}.")
    check_text(request.prompt)
    job = Job(request)
    queue.put(job, instead_of=instead_of, owner=owner)
    return job
