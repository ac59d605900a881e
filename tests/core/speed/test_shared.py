"""Two generations that share a cache or decoder raise an error."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest
import torch

from attention_core import KVCache, Transformer, generate, stream
from attention_core.speed.decoder import Decoder
from attention_core.speed.speculative import SpeculativeDecoder
from tests.helpers.decoders import GPT2, PROMPT, random_model

MAX_LENGTH, N_NEW = 26, 12
OTHERS = {"longer": (9, 9, 41, 2, 9, 33, 8), "equal": (9, 2, 41, 9, 33), "shorter": (9,)}
Start = Callable[[tuple[int, ...]], Iterator[list[int]]]


def with_cache(model: Transformer) -> tuple[Start, KVCache]:
    cache = model.new_cache(1, MAX_LENGTH)

    def start(prompt: tuple[int, ...]) -> Iterator[list[int]]:
        cache.reset()
        steps = stream(model, prompt, max_new_tokens=N_NEW, cache=cache)
        return ([step.token_id] for step in steps)

    return start, cache


def with_decoder(model: Transformer) -> tuple[Start, KVCache]:
    decoder = Decoder(model, MAX_LENGTH)

    def start(prompt: tuple[int, ...]) -> Iterator[list[int]]:
        return ([step.token_id] for step in decoder.stream(prompt, max_new_tokens=N_NEW))

    return start, decoder.cache


def with_drafts(model: Transformer) -> tuple[Start, KVCache]:
    decoder = SpeculativeDecoder(model, model, MAX_LENGTH, n_drafted=2)

    def start(prompt: tuple[int, ...]) -> Iterator[list[int]]:
        return (list(r.token_ids) for r in decoder.rounds(prompt, max_new_tokens=N_NEW))

    return start, decoder._check.cache


GENERATORS = {"stream": with_cache, "Decoder": with_decoder, "SpeculativeDecoder": with_drafts}
every_generator = pytest.mark.parametrize("generator", GENERATORS)


@every_generator
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("n_theirs", [1, 3])
@pytest.mark.parametrize("n_ours", [1, 2])
def test_second_generation_stops_the_first(generator: str, other: str, n_theirs: int, n_ours: int):
    """The first one stops even if the lengths are equal; the second one continues."""
    model = random_model(GPT2)
    start, cache = GENERATORS[generator](model)
    first = start(PROMPT)
    for _ in range(n_ours):
        next(first)
    length = cache.length
    second = start(OTHERS[other])
    tokens = [token_id for _ in range(n_theirs) for token_id in next(second)]
    with pytest.raises(ValueError, match=f"{length}.*{cache.length}"):
        next(first)
    tokens += [token_id for token_ids in second for token_id in token_ids]
    assert tokens == generate(model, OTHERS[other], max_new_tokens=N_NEW)


@every_generator
@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("change", ["crop", "extend", "to the same length", "back and forth"])
def test_changing_the_cache_stops_the_generation(generator: str, change: str, window: int | None):
    model = random_model(dataclasses.replace(GPT2, window=window))
    start, cache = GENERATORS[generator](model)
    first = start(PROMPT)
    next(first)
    next(first)
    length = cache.length
    if change in ("crop", "to the same length"):
        cache.crop(length - 1)
    if change == "back and forth":
        cache.reset()
    n_more = {"extend": 2, "to the same length": 1, "back and forth": length}.get(change, 0)
    if n_more:
        model(torch.full((1, n_more), 9), cache=cache)
    with pytest.raises(ValueError, match=f"{length}.*{cache.length}"):
        next(first)


@pytest.mark.parametrize("generator", ["Decoder", "SpeculativeDecoder"])
def test_one_decoder_can_run_several_generations_in_sequence(generator: str):
    """Generations can run in any order, even after an unfinished one."""
    model = random_model(GPT2)
    start, _ = GENERATORS[generator](model)
    prompts = [PROMPT, *OTHERS.values()]
    generations = [start(prompt) for prompt in prompts]
    next(start(PROMPT))
    for prompt, steps in zip(reversed(prompts), reversed(generations), strict=True):
        tokens = [token_id for token_ids in steps for token_id in token_ids]
        assert tokens == generate(model, prompt, max_new_tokens=N_NEW)


def test_two_streams_on_one_cache():
    """The second stream expects the cache as it was when the stream was created."""
    model = random_model(GPT2)
    cache = model.new_cache(1, MAX_LENGTH)
    first, second = (
        stream(model, prompt, max_new_tokens=3, cache=cache) for prompt in (PROMPT, (9, 2))
    )
    assert len(list(first)) == 3
    with pytest.raises(ValueError, match="it had 0 tokens and now has 7"):
        next(second)
