"""Sampling filters match those of transformers, and generation step by step."""

import math

import pytest
import torch
from torch.testing import assert_close
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper
from transformers.generation.logits_process import TopPLogitsWarper

from attention_core import Sampling, Transformer, generate, probabilities, sample, stream
from tests.helpers.tiny_models import build

PROMPT = [3, 1, 4, 1, 5]


def random_logits(size: int = 50) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(0)) * 3


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [None, 1, 7, 500])
@pytest.mark.parametrize("top_p", [None, 0.05, 0.6, 1.0])
def test_filters_equal_transformers(temperature: float, top_k: int | None, top_p: float | None):
    logits = random_logits()
    filters = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k is not None:
        filters.append(TopKLogitsWarper(top_k))
    if top_p is not None:
        filters.append(TopPLogitsWarper(top_p))
    expected = torch.softmax(filters(None, logits[None])[0], dim=-1)
    ours = probabilities(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    assert_close(ours, expected)


def test_low_temperature_approaches_greedy():
    logits = random_logits()
    assert_close(
        probabilities(logits, Sampling()), probabilities(logits, Sampling(temperature=1e-40))
    )
    assert sample(logits, Sampling(), torch.Generator()) == int(logits.argmax())


@pytest.mark.parametrize("temperature", [5e-324, 1e-39])
@pytest.mark.parametrize("logits", [[1.0, 7.0, -3.0, 7.0, 2.0], [-9.0, 0.0, -4.0, 0.0, -5.0]])
@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"top_p": 0.4}])
def test_overflowing_temperature_is_greedy(
    temperature: float, logits: list[float], filters: dict[str, float]
):
    """Pick the first of two equal logits, like argmax, without random numbers."""
    sampling = Sampling(temperature=temperature, **filters)  # type: ignore[arg-type]
    expected = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    assert_close(probabilities(torch.tensor(logits), sampling), expected, atol=0, rtol=0)
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    assert {sample(torch.tensor(logits), sampling, generator) for _ in range(9)} == {1}
    assert torch.equal(generator.get_state(), before)


def test_top_p_of_one_keeps_every_token():
    """In float32, the cumulative sum can reach 1 before the last token."""
    logits = torch.linspace(0, -30, 5003)
    assert probabilities(logits, Sampling(temperature=1.0)).min() > 0
    everything = probabilities(logits, Sampling(temperature=1.0, top_p=1.0))
    assert_close(everything, probabilities(logits, Sampling(temperature=1.0)), atol=0, rtol=0)


def test_ties_at_the_kth_logit_are_all_kept():
    logits = torch.tensor([2.0, 5.0, 2.0, 1.0, 2.0])
    is_kept = probabilities(logits, Sampling(temperature=1.0, top_k=2)) > 0
    assert is_kept.tolist() == [True, True, True, False, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sampling_computes_in_float32(dtype: torch.dtype):
    logits = random_logits(3001).to(dtype)
    for sampling in (Sampling(), Sampling(temperature=0.7, top_k=900, top_p=0.95)):
        ours = probabilities(logits, sampling)
        assert ours.dtype == torch.float32
        assert_close(ours, probabilities(logits.float(), sampling), atol=0, rtol=0)
        assert math.isclose(float(ours.sum()), 1.0, abs_tol=1e-6)
        draws = [
            sample(values, sampling, torch.Generator().manual_seed(4))
            for values in (logits, logits.float())
        ]
        assert draws[0] == draws[1]


def test_samples_follow_the_distribution():
    sampling = Sampling(temperature=1.3, top_k=6)
    logits, generator = random_logits(), torch.Generator().manual_seed(1)
    draws = 4000
    counts = torch.zeros_like(logits)
    for _ in range(draws):
        counts[sample(logits, sampling, generator)] += 1
    # five standard errors of the share with the largest variance
    assert_close(counts / draws, probabilities(logits, sampling), atol=2.5 / draws**0.5, rtol=0)


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=1.1, top_k=20, top_p=0.95, seed=7)]
)
def test_cached_and_uncached_runs_agree(decoder: Transformer, sampling: Sampling):
    n_new = 20
    cache = decoder.new_cache(1, len(PROMPT) + n_new)
    cached = list(stream(decoder, PROMPT, max_new_tokens=n_new, cache=cache, sampling=sampling))
    uncached = list(stream(decoder, PROMPT, max_new_tokens=n_new, sampling=sampling))
    assert [s.token_id for s in cached] == [s.token_id for s in uncached]
    for one, other in zip(cached, uncached, strict=True):
        assert_close(one.logits, other.logits, atol=1e-5, rtol=1e-5)
        assert math.isclose(one.logprob, other.logprob, abs_tol=1e-4)
    assert [s.kind for s in cached] == ["prefill"] + ["decode"] * (n_new - 1)
    assert [s.n_new for s in cached] == [len(PROMPT)] + [1] * (n_new - 1)
    assert [s.n_new for s in uncached] == [s.n_keys for s in cached]
    assert [s.cache_length for s in cached] == [len(PROMPT) + i for i in range(n_new)]
    assert {s.cache_length for s in uncached} == {0}
    assert all(s.seconds > 0 and s.flops > 0 for s in cached)
    assert sum(s.flops for s in cached) < sum(s.flops for s in uncached)


def test_last_position_of_the_context_is_used(decoder: Transformer):
    n_new = decoder.config.context_length - len(PROMPT) + 1
    cache = decoder.new_cache(1, decoder.config.context_length)
    ids = generate(decoder, PROMPT, max_new_tokens=n_new, cache=cache)
    assert len(ids) == n_new
    assert cache.length == cache.max_length
    assert ids == generate(decoder, PROMPT, max_new_tokens=n_new)


def test_generation_continues_an_existing_cache(decoder: Transformer):
    whole = generate(decoder, PROMPT, max_new_tokens=12)
    cache = decoder.new_cache(1, 40)
    first = generate(decoder, PROMPT, max_new_tokens=5, cache=cache)
    # the fifth token was sampled but not processed, so it's the next prompt
    rest = generate(decoder, first[-1:], max_new_tokens=7, cache=cache)
    assert first + rest == whole


def test_stops_after_a_stop_token(decoder: Transformer):
    unstopped = generate(decoder, PROMPT, max_new_tokens=15)
    stop = unstopped[6]
    ids = generate(decoder, PROMPT, max_new_tokens=15, stop_ids={stop})
    assert ids == unstopped[: unstopped.index(stop) + 1]


def test_caller_is_not_left_in_inference_mode(decoder: Transformer):
    for _ in stream(decoder, PROMPT, max_new_tokens=2):
        assert not torch.is_inference_mode_enabled()


def test_rejects_invalid_arguments_before_the_first_pass(decoder: Transformer):
    limit, short_cache = decoder.config.context_length, decoder.new_cache(1, 8)
    for numbers, options in {
        f"{limit + 1}": {"max_new_tokens": limit - len(PROMPT) + 2},
        "9.*8": {"max_new_tokens": 5, "cache": short_cache},
        "3": {"max_new_tokens": 5, "cache": decoder.new_cache(3, 20)},
        "max_new_tokens.*0": {"max_new_tokens": 0},
        "max_new_tokens.*True": {"max_new_tokens": True},
    }.items():
        with pytest.raises(ValueError, match=numbers):
            stream(decoder, PROMPT, **options)
    with pytest.raises(ValueError, match="no output matrix"):
        stream(build("bert"), PROMPT, max_new_tokens=1)
