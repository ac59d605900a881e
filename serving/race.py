"""The same text generated with a KV cache and without one, step by step in turn.

What happens is told as events, in an order that the request alone decides, so that it can run in
this process or in another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from serving import compute, models, rounded
from serving.interruptions import Heartbeat
from serving.limits import MAX_NEW_TOKENS, MAX_PROMPT_TOKENS, OverLimit, check_text
from serving.prompts import prepare
from serving.step_times import StepTime

if TYPE_CHECKING:
    from attention_core import KVCache, Sampling, Step, Transformer, TransformerConfig

    _Watched = tuple[Step, float]  # and the seconds that the process stood still during it


@dataclass(frozen=True)
class RaceRequest:
    """What a visitor asked for."""

    model: str
    prompt: str
    max_new_tokens: int
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    weights: rounded.Weights = "float32"

    @property
    def summary(self) -> str:
        """The settings in a line, so that what is shown cannot be mistaken for another run's."""
        parts = [models.title(self.model), f"{self.max_new_tokens} new tokens"]
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

    def check(self) -> None:
        """Raise OverLimit for a number of tokens out of range, or a prompt that is too long."""
        if not 1 <= self.max_new_tokens <= MAX_NEW_TOKENS:
            raise OverLimit(f"Ask for 1 to {MAX_NEW_TOKENS} new tokens, not {self.max_new_tokens}.")
        check_text(self.prompt)


@dataclass(frozen=True)
class CacheSize:
    """Bytes of stored keys and values: of the cache's own tensors, and by the lectures' formula."""

    measured: int
    formula: int


@dataclass(frozen=True)
class Begun:
    """The model is there. device: where it runs, and the form of its numbers."""

    device: str


@dataclass(frozen=True)
class RaceStep:
    """One token of both generations; difference: the largest between their logits."""

    cached: StepTime
    uncached: StepTime
    difference: float
    cache_size: CacheSize


@dataclass(frozen=True)
class Ended:
    """Both generations are over. notice: why there are fewer tokens than were asked for, if so."""

    notice: str


Event = Begun | RaceStep | Ended


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


def race(request: RaceRequest, check_stop: Callable[[int], None]) -> Iterator[Event]:
    """Generate with the cache and without it, a few pairs of steps in each compute slot.

    check_stop: called before every layer of every pass; what it raises ends the race.
    Raises: OverLimit or ValueError for a request that cannot be run; errors as of `models.get`.
    """
    from attention_core import Hooks, stream

    request.check()
    sampling, model = request.sampling(), models.get(request.model)
    check_stop(0)
    core = rounded.core(request.model, request.weights)
    numbers = str(model.dtype).removeprefix("torch.")
    yield Begun(f"{model.device}, {numbers if request.weights == 'float32' else request.weights}")
    prompt = prepare(model, request.prompt, MAX_PROMPT_TOKENS, "a prompt", request.max_new_tokens)
    ids, n_new = prompt.ids, prompt.n_new
    # the last new token is never run itself
    cache, cached = _cached(core, request.weights, len(ids) + n_new - 1, sampling)
    uncached = partial(stream, core, sampling=sampling)
    hooks = Hooks(before_layer=check_stop)
    # Warm-up: the same passes once before they are timed, so that neither run goes first.
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
        with_cache = heartbeat.watched(cached(ids, **options))
        without = heartbeat.watched(uncached(ids, **options))
        pairs = _pairs(with_cache, without, partial(cache_size, cache, core.config), n_new)
        for one, other, size in compute.steps(pairs, exclusive=True):
            if one is None or other is None:
                both = one is None and other is None
                yield Ended(f"{'The model' if both else 'One run'} ended its text here.")
                return
            difference = float((one[0].logits - other[0].logits).abs().max())
            yield RaceStep(StepTime.of(*one), StepTime.of(*other), difference, size)
    yield Ended(prompt.note)


def _cached(
    core: Transformer, weights: rounded.Weights, max_length: int, sampling: Sampling
) -> tuple[KVCache, Callable[..., Iterator[Step]]]:
    """An empty cache for so many tokens, and how to generate with it.

    In bfloat16 the steps are recorded and repeated (`attention_core.speed`).
    """
    from attention_core import stream

    if weights == "bfloat16":
        from attention_core.speed.decoder import Decoder

        # drawn on the CPU: the run without the cache draws there, and shall draw the same tokens
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
    """A step of each generation, None where it has ended, and the size of the cache behind them."""
    for number in range(n_new):
        # taking turns in going first, so that neither always pays for what the other evicted
        if number % 2:
            other, one = next(without, None), next(with_cache, None)
        else:
            one, other = next(with_cache, None), next(without, None)
        yield one, other, size()
        if one is None or other is None:
            return
