"""Generates the same text with and without a KV cache, alternating between the two.

The results are a stream of events, so a race can run in this process or on a model server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from serving import compute, models, reduced_precision
from serving.interruptions import Heartbeat
from serving.limits import MAX_NEW_TOKENS, MAX_PROMPT_TOKENS, OverLimit, check_text
from serving.prompts import prepare_prompt
from serving.step_times import StepTime

if TYPE_CHECKING:
    from attention_core import KVCache, Sampling, Step, Transformer, TransformerConfig

    _Watched = tuple[Step, float]  # a step, and the seconds the process was suspended during it


@dataclass(frozen=True)
class RaceRequest:
    """The settings that a visitor chose."""

    model: str
    prompt: str
    max_new_tokens: int
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    weights: reduced_precision.Weights = "float32"

    @property
    def summary(self) -> str:
        """A line with the settings, which tells visitors which run produced the results."""
        parts = [models.title(self.model), f"{self.max_new_tokens} new tokens"]
        if self.weights != "float32":
            parts.insert(1, f"weights in {self.weights}")
        if self.temperature == 0:
            return ", ".join([*parts, "always the most likely token"])
        parts.append(f"temperature {self.temperature:g}")
        if self.top_k is not None:
            parts.append(f"top-k {self.top_k}")
        if self.top_p is not None:
            parts.append(f"top-p {self.top_p:g}")
        return ", ".join([*parts, f"seed {self.seed}"])

    def sampling(self) -> Sampling:
        """The sampling settings for the core; ValueError for values out of range."""
        from attention_core import Sampling

        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)

    def check(self) -> None:
        """Raise OverLimit for a number of tokens out of range, or a prompt that is too long."""
        if not 1 <= self.max_new_tokens <= MAX_NEW_TOKENS:
            raise OverLimit(f"Choose 1 to {MAX_NEW_TOKENS} new tokens, not {self.max_new_tokens}.")
        check_text(self.prompt)


@dataclass(frozen=True)
class CacheSize:
    """Bytes of the stored keys and values: measured, and by the formula from the lectures."""

    measured: int
    formula: int


@dataclass(frozen=True)
class RaceStarted:
    """The model is loaded. device: its device and number format."""

    device: str


@dataclass(frozen=True)
class RaceStep:
    """A step of both generations; difference: the largest difference between their logits."""

    cached: StepTime
    uncached: StepTime
    difference: float
    cache_size: CacheSize


@dataclass(frozen=True)
class RaceEnded:
    """Both generations are done. notice: why there are fewer tokens than requested, or empty."""

    notice: str


Event = RaceStarted | RaceStep | RaceEnded


def cache_size(cache: KVCache, config: TransformerConfig) -> CacheSize:
    """The size of a cache's current contents, measured and by the formula for its attention.

    The formula is layers x batch x key/value heads x head size x tokens x 2 x bytes per value.
    Latents and windows have different formulas (`attention_core.costs.formulas.cache_bytes`).
    """
    from attention_core import cache_bytes

    keys, _ = cache.layer(0)
    formula = cache_bytes(
        config, cache.length, batch_size=cache.batch_size, bytes_per_value=keys.element_size()
    )
    return CacheSize(cache.nbytes_used, formula)


def race(request: RaceRequest, check_stop: Callable[[int], None]) -> Iterator[Event]:
    """Generate with and without the cache, a few pairs of steps per compute slot.

    check_stop: called before every layer of every pass; an error it raises ends the race.
    Raises: OverLimit or ValueError for a request that can't be run; the errors of `models.get`.
    """
    from attention_core import Hooks, stream

    request.check()
    sampling, model = request.sampling(), models.get(request.model)
    check_stop(0)
    core = reduced_precision.load_core(request.model, request.weights)
    numbers = str(model.dtype).removeprefix("torch.")
    yield RaceStarted(
        f"{model.device}, {numbers if request.weights == 'float32' else request.weights}"
    )
    prompt = prepare_prompt(
        model, request.prompt, MAX_PROMPT_TOKENS, "a prompt", request.max_new_tokens
    )
    ids, n_new = prompt.ids, prompt.n_new
    # the last new token is never run
    cache, cached = _cached_generation(core, request.weights, len(ids) + n_new - 1, sampling)
    uncached = partial(stream, core, sampling=sampling)
    hooks = Hooks(before_layer=check_stop)
    # Warm up with the same passes, so that neither generation pays for being first.
    few = min(n_new, 2)  # a prefill and a decode step
    with compute.slot(exclusive=True):
        deque(cached(ids, max_new_tokens=few, hooks=hooks), maxlen=0)
        deque(uncached(ids, max_new_tokens=1, hooks=hooks), maxlen=0)
    cache.reset()
    options: dict[str, Any] = {
        "max_new_tokens": n_new,
        "stop_ids": model.tokenizer.end_ids,
        "hooks": hooks,
    }
    with Heartbeat() as heartbeat:
        with_cache = heartbeat.measure_stalls(cached(ids, **options))
        without = heartbeat.measure_stalls(uncached(ids, **options))
        pairs = _pairs(with_cache, without, partial(cache_size, cache, core.config), n_new)
        for one, other, size in compute.steps(pairs, exclusive=True):
            if one is None or other is None:
                both = one is None and other is None
                subject = "The model" if both else "One of the two runs"
                yield RaceEnded(f"{subject} generated the end of the text here.")
                return
            difference = float((one[0].logits - other[0].logits).abs().max())
            yield RaceStep(StepTime.from_step(*one), StepTime.from_step(*other), difference, size)
    yield RaceEnded(prompt.note)


def _cached_generation(
    core: Transformer, weights: reduced_precision.Weights, max_length: int, sampling: Sampling
) -> tuple[KVCache, Callable[..., Iterator[Step]]]:
    """An empty cache for `max_length` tokens, and a function that generates with it.

    In bfloat16, steps are recorded as CUDA graphs and replayed (`attention_core.speed`).
    """
    from attention_core import stream

    if weights == "bfloat16":
        from attention_core.speed.decoder import Decoder

        # sample on the CPU, like the run without a cache, so that both draw the same tokens
        decoder = Decoder(core, max_length, sampling=sampling, draw_on_cpu=True)
        return decoder.cache, decoder.stream
    cache = core.new_cache(1, max_length)
    return cache, partial(stream, core, cache=cache, sampling=sampling)


def _pairs(
    with_cache: Iterator[_Watched],
    without: Iterator[_Watched],
    size: Callable[[], CacheSize],
    n_new: int,
) -> Iterator[tuple[_Watched | None, _Watched | None, CacheSize]]:
    """Pairs of steps (None once a generation has ended), with the cache size after them."""
    for number in range(n_new):
        # alternate which one goes first, so that neither always pays for the other's cache
        # evictions
        if number % 2:
            other, one = next(without, None), next(with_cache, None)
        else:
            one, other = next(with_cache, None), next(without, None)
        yield one, other, size()
        if one is None or other is None:
            return
