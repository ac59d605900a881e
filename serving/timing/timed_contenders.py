"""Models and random shapes that can be timed, and the contenders that generate with them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pretrained.untrained import SHAPES, UntrainedModel
from serving import models, reduced_precision
from serving.cache import MODELS, cached
from serving.limits import (
    MAX_PROMPT_TOKENS,
    MAX_TIMED_REPEATS,
    MAX_TIMED_TOKENS,
    OverLimit,
    check_text,
)
from serving.prompts import prepare_prompt

if TYPE_CHECKING:
    from attention_core import Step, Transformer
    from attention_core.speed.decoder import Decoder
    from attention_core.speed.int8 import Int8Transformer
    from pretrained import Pretrained

GPT2_SHAPE, TINY = "random-gpt2-124m", "random-tiny"

CORE_CACHED, CORE_UNCACHED = "core, cached", "core, uncached"
TRANSFORMERS_CACHED, TRANSFORMERS_UNCACHED = "transformers, cached", "transformers, uncached"
# These two have rounded weights, so they may generate a different text. The second one records its
# steps as a CUDA graph and replays them.
CORE_INT8 = "core, int8, cached"
CORE_GRAPHS = "core, bfloat16 CUDA graphs, cached"
FULL_PRECISION = (CORE_CACHED, CORE_UNCACHED, TRANSFORMERS_CACHED, TRANSFORMERS_UNCACHED)
CONTENDERS = (*FULL_PRECISION, CORE_INT8, CORE_GRAPHS)
CACHED = (CORE_CACHED, TRANSFORMERS_CACHED, CORE_INT8, CORE_GRAPHS)
PAIRS = ((CORE_CACHED, CORE_UNCACHED), (TRANSFORMERS_CACHED, TRANSFORMERS_UNCACHED))

MIN_TOKENS = 16  # enough to fit a curve and an exponent


@dataclass(frozen=True)
class TimingRequest:
    """The settings of a measurement that a visitor chose."""

    model: str
    prompt: str
    n_new: int
    repeats: int
    contenders: tuple[str, ...]

    def check(self) -> None:
        """Raise OverLimit or ValueError, with the values, for settings that can't be run."""
        check_text(self.prompt)
        if not MIN_TOKENS <= self.n_new <= MAX_TIMED_TOKENS:
            raise OverLimit(
                f"Choose {MIN_TOKENS} to {MAX_TIMED_TOKENS} new tokens, not {self.n_new}."
            )
        if not 1 <= self.repeats <= MAX_TIMED_REPEATS:
            raise OverLimit(f"Choose 1 to {MAX_TIMED_REPEATS} repeats, not {self.repeats}.")
        if not self.contenders:
            raise ValueError("Choose at least one way to generate.")
        unknown = set(self.contenders) - set(CONTENDERS)
        if unknown:
            raise ValueError(
                f"Unknown way to generate: {', '.join(sorted(unknown))}. "
                f"Choose from {'; '.join(CONTENDERS)}."
            )


# The lecture's experiment: GPT-2, a short prompt, 100 new tokens; we add transformers to compare.
LECTURE = TimingRequest(GPT2_SHAPE, "The next day is bright", 100, 1, FULL_PRECISION)
# The page's default: the same with a GPT-2 that's small enough to finish in seconds.
FIRST = TimingRequest("gpt2-novels", LECTURE.prompt, 100, 3, FULL_PRECISION)


@dataclass(frozen=True)
class Contender:
    """A way to generate: `start(token_ids, n_new)` yields its steps, one model call each."""

    cached: bool
    start: Callable[[tuple[int, ...], int], Iterator[Step]]


def model_names() -> list[str]:
    """The models that can be timed: the available decoders, then the random shapes."""
    shapes = list(SHAPES) if _has_transformers() else []
    return [*(entry.spec.name for entry in models.available("decoder")), *shapes]


def available_contenders() -> list[str]:
    """The contenders that this machine can run."""
    wanted = [name for name in CONTENDERS if _has_transformers() or name.startswith("core")]
    return [name for name in wanted if name != CORE_GRAPHS or reduced_precision.has_gpu()]


def _has_transformers() -> bool:
    return importlib.util.find_spec("transformers") is not None


def load(name: str) -> Pretrained | UntrainedModel:
    """The model or random shape `name`, shared; errors as in `models.get`, or ImportError."""
    if name not in SHAPES:
        return models.get(name)
    return _untrained(name)


def reference(model: Pretrained | UntrainedModel) -> Any:
    """The transformers model with the same weights; errors as in `models.reference`."""
    return model.reference if isinstance(model, UntrainedModel) else models.reference(model)


def _int8(model: Pretrained | UntrainedModel) -> Int8Transformer:
    if isinstance(model, UntrainedModel):
        return _untrained_int8(model.name)
    return reduced_precision.load_int8(model.spec.name)


@cached(cache=MODELS, key=lambda name: name, size=lambda model: model.n_bytes)
def _untrained_int8(name: str) -> Int8Transformer:
    from attention_core.speed.int8 import Int8Transformer

    return Int8Transformer(_untrained(name).core)


@cached(cache=MODELS, key=lambda name: name)
def _untrained(name: str) -> UntrainedModel:
    from pretrained.untrained import untrained

    return untrained(name)


def prompt_ids(model: Pretrained | UntrainedModel, prompt: str, n_new: int) -> tuple[int, ...]:
    """The prompt's token ids; OverLimit or ValueError, with the values, if they can't be run."""
    prepared = prepare_prompt(model, prompt, MAX_PROMPT_TOKENS, "a prompt", n_new)
    ids, context = prepared.ids, model.core.config.context_length
    if prepared.n_new < n_new:
        needed = len(ids) + n_new - 1  # the last new token is never run
        raise OverLimit(
            f"A prompt of {len(ids)} tokens with {n_new} new ones needs {needed} positions, but "
            f"this model's context has {context}. Choose fewer new tokens or shorten the prompt; "
            "your text is still in the box."
        )
    return ids


def contenders(
    model: Pretrained | UntrainedModel,
    names: tuple[str, ...],
    max_tokens: int,
    before_layer: Callable[[int], None],
) -> Mapping[str, Contender]:
    """The contenders named in `names`, for sequences of up to `max_tokens` tokens.

    before_layer: called before every layer of every pass; it may raise to end the pass.
    """
    by_name: dict[str, Contender] = {}
    for name in names:
        cached = name in CACHED
        if name == CORE_INT8:
            start = partial(_core, _int8(model), max_tokens, before_layer)
        elif name == CORE_GRAPHS:
            start = partial(_graphs, _decoder(model, max_tokens), before_layer)
        elif name in (CORE_CACHED, CORE_UNCACHED):
            start = partial(_core, model.core, max_tokens if cached else None, before_layer)
        else:
            start = partial(_transformers, model, cached, before_layer)
        by_name[name] = Contender(cached, start)
    return by_name


def _core(
    core: Transformer,
    cache_tokens: int | None,
    before_layer: Callable[[int], None],
    token_ids: tuple[int, ...],
    n_new: int,
) -> Iterator[Step]:
    from attention_core import Hooks, stream

    cache = None if cache_tokens is None else core.new_cache(1, cache_tokens)
    return stream(core, token_ids, max_new_tokens=n_new, cache=cache, hooks=Hooks(before_layer))


def _decoder(model: Pretrained | UntrainedModel, max_tokens: int) -> Decoder:
    """The model in bfloat16, with steps recorded as CUDA graphs; ValueError without a GPU."""
    if not reduced_precision.has_gpu():
        raise ValueError(f"{CORE_GRAPHS!r} needs a GPU, and this machine has none.")

    from attention_core.speed.decoder import Decoder

    if isinstance(model, UntrainedModel):
        return Decoder(reduced_precision.to_bfloat16(model.core), max_tokens)
    return Decoder(reduced_precision.load_bfloat16(model.spec.name), max_tokens)


def _graphs(
    decoder: Decoder, before_layer: Callable[[int], None], token_ids: tuple[int, ...], n_new: int
) -> Iterator[Step]:
    from attention_core import Hooks

    return decoder.stream(token_ids, max_new_tokens=n_new, hooks=Hooks(before_layer))


def _transformers(
    model: Pretrained | UntrainedModel,
    cached: bool,
    before_layer: Callable[[int], None],
    token_ids: tuple[int, ...],
    n_new: int,
) -> Iterator[Step]:
    from pretrained.reference_steps import reference_steps

    return reference_steps(
        reference(model),
        model.core.config,
        token_ids,
        max_new_tokens=n_new,
        cached=cached,
        before_layer=before_layer,
    )
