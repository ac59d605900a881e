"""Sliding windows and head counts give the same logits with either kind of cache."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import (
    SlidingCache,
    Transformer,
    TransformerConfig,
    causal_mask,
)
from tests.helpers.attention_variants import (
    HEADS,
    LENGTH,
    check_chunks,
    check_crop,
    chunked,
    enlarged_model,
    feed,
    tokens,
)
from tests.helpers.tiny_models import TINY

WINDOW = 5


def window_config(name: str, window: int = WINDOW) -> Transformer:
    return enlarged_model(replace(TINY[name], window=window))


@pytest.fixture(params=["gpt2", "llama", "llama-tied"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return window_config(request.param)


@pytest.mark.parametrize("name", HEADS)
@chunked
def test_every_head_count_with_a_cache(name: str, sizes: list[int]):
    model = enlarged_model(HEADS[name])
    cache = model.new_cache(2, LENGTH + 4)
    assert cache.layer(0)[0].shape[1] == HEADS[name].kv_heads
    check_chunks(model, cache, sizes)


@pytest.mark.parametrize("name", HEADS)
def test_every_head_count_after_cropping(name: str):
    model = enlarged_model(HEADS[name])
    check_crop(model, model.new_cache(2, LENGTH))


def test_sliding_window_mask():
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]
    assert causal_mask(5, 5, window=2).int().tolist() == expected
    assert causal_mask(2, 5, window=2).int().tolist() == expected[3:]
    assert causal_mask(3, 3, window=1).int().tolist() == torch.eye(3).int().tolist()
    assert torch.equal(causal_mask(4, 7, window=7), causal_mask(4, 7))
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        causal_mask(3, 3, window=0)


def test_window_only_matters_if_shorter_than_the_text():
    ids = tokens(window_config("llama"))
    whole = enlarged_model(TINY["llama"])(ids).logits
    assert torch.equal(window_config("llama", LENGTH)(ids).logits, whole)
    narrow = window_config("llama", LENGTH - 1)(ids).logits
    assert torch.equal(narrow[:, :-1], whole[:, :-1])
    assert not torch.allclose(narrow[:, -1], whole[:, -1], atol=1e-3)


@pytest.mark.parametrize("keep_all", [False, True], ids=["ring cache", "full cache"])
@pytest.mark.parametrize("batch", [1, 3])
@chunked
def test_chunked_logits_equal_uncached_logits(
    model: Transformer, sizes: list[int], batch: int, keep_all: bool
):
    check_chunks(model, model.new_cache(batch, LENGTH + 4, keep_all=keep_all), sizes)


@pytest.mark.parametrize("keep_all", [False, True], ids=["ring cache", "full cache"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_chunks_and_single_steps_with_16_bits(
    model: Transformer, dtype: torch.dtype, keep_all: bool
):
    """Also with several new tokens per pass, before and after the ring is full."""
    half = model.to(dtype)
    ids = tokens(half)
    expected = half(ids).logits.float()
    for sizes in ([4, 2, 2, 5, 10], [LENGTH - 2, 2], [1] * LENGTH):
        cache = half.new_cache(2, LENGTH, keep_all=keep_all)
        logits = feed(half, ids, cache, sizes)
        assert logits.dtype == dtype
        # a different order of sums may round differently by eps; a lost key changes far more
        error = (logits.float() - expected).norm() / expected.norm()
        assert error < 4 * torch.finfo(dtype).eps, sizes


@pytest.mark.parametrize("window", [1, 2, LENGTH - 1, LENGTH + 9])
@pytest.mark.parametrize("sizes", [[1] * LENGTH, [7, 1, 1, 9, 2, 3], [13, 10]])
def test_every_window_size(window: int, sizes: list[int]):
    model = window_config("llama", window)
    check_chunks(model, model.new_cache(2, LENGTH), sizes)


def test_full_cache_can_be_cropped(model: Transformer):
    check_crop(model, model.new_cache(2, LENGTH, keep_all=True))


def test_full_ring_can_only_be_cropped_by_one_token_or_emptied(model: Transformer):
    ids = tokens(model)
    other = (ids + 1) % model.config.vocab_size
    expected = model(ids).logits
    cache = model.new_cache(2, LENGTH)
    model(torch.cat((ids[:, :12], other[:, 12:13]), dim=1), cache=cache)
    assert (cache.length, cache.n_stored) == (13, WINDOW)
    for too_far in (11, 6, 1):
        with pytest.raises(ValueError, match=rf"to {too_far} tokens: .* 8 to 12"):
            cache.crop(too_far)
    cache.crop(12)
    assert (cache.length, cache.n_stored) == (12, WINDOW - 1)
    # a full ring can only go back by one token
    with pytest.raises(ValueError, match="to 11 tokens"):
        cache.crop(11)
    continued = feed(model, ids[:, 12:], cache, [1, 1, LENGTH - 14])
    assert_close(continued, expected[:, 12:], atol=1e-5, rtol=1e-5)
    cache.crop(0)
    assert cache.length == cache.n_stored == cache.nbytes_used == 0
    assert_close(feed(model, ids, cache, [9, 14]), expected, atol=1e-5, rtol=1e-5)


def test_ring_that_is_not_full_can_be_cropped_anywhere(model: Transformer):
    ids = tokens(model)
    other = (ids + 1) % model.config.vocab_size
    cache = model.new_cache(2, LENGTH)
    model(torch.cat((ids[:, :2], other[:, 2:WINDOW]), dim=1), cache=cache)
    cache.crop(2)
    continued = feed(model, ids[:, 2:], cache, [1, 6, LENGTH - 9])
    assert_close(continued, model(ids).logits[:, 2:], atol=1e-5, rtol=1e-5)


def test_ring_keeps_the_last_rows_in_order(model: Transformer):
    ids = tokens(model)
    ring, whole = model.new_cache(2, LENGTH), model.new_cache(2, LENGTH, keep_all=True)
    for chunk in ids.split([3, 1, 4, 1, 1, 9, 4], dim=1):
        n_keys = ring.n_keys(chunk.shape[1])
        assert n_keys == min(ring.length, WINDOW - 1) + chunk.shape[1]
        records = model(chunk, cache=ring, record=True).records
        model(chunk, cache=whole)
        assert all(record.k.shape[2] == record.weights.shape[3] == n_keys for record in records)
        for layer in range(model.config.n_layers):
            for ring_rows, rows in zip(ring.layer(layer), whole.layer(layer), strict=True):
                assert_close(ring_rows, rows[:, :, -WINDOW:], atol=1e-6, rtol=1e-5)
            assert_close(records[layer].k, whole.layer(layer)[0][:, :, -n_keys:])


def test_rejects_invalid_windows():
    with pytest.raises(ValueError, match="window=3.*causal=False"):
        replace(TINY["gpt2"], window=3, causal=False)
    config: TransformerConfig = TINY["gpt2"]
    cache = SlidingCache(
        config.n_layers, 2, 9, key_shape=(config.kv_heads, config.d_head), window=WINDOW
    )
    model = enlarged_model(config)
    with pytest.raises(ValueError, match="5.*None"):
        model(tokens(model)[:, :3], cache=cache)
