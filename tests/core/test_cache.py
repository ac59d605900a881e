"""With a cache the logits are those without one, however the tokens arrive."""

import copy
import dataclasses

import pytest
import torch
from torch.testing import assert_close

from attention_core import KVCache, Transformer, kv_cache_bytes
from tests.helpers.tiny_models import build

BATCH, LENGTH = 2, 23


def tokens(model: Transformer, length: int = LENGTH, batch: int = BATCH) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def run(model: Transformer, ids: torch.Tensor, cache: KVCache, sizes: list[int]) -> torch.Tensor:
    """Logits of all positions, fed in chunks of the given sizes."""
    parts = [model(chunk, cache=cache).logits for chunk in ids.split(sizes, dim=1)]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "sizes",
    [[LENGTH], [1] * LENGTH, [7, 1, 1, 9, 2, 3], [1, 22], [22, 1]],
    ids=["at once", "one by one", "uneven", "one then many", "many then one"],
)
def test_chunks_give_the_uncached_logits(decoder: Transformer, sizes: list[int], batch: int):
    ids = tokens(decoder, batch=batch)
    expected = decoder(ids).logits
    cache = decoder.new_cache(batch, LENGTH + 4)
    assert_close(run(decoder, ids, cache, sizes), expected, atol=1e-5, rtol=1e-5)
    assert cache.length == LENGTH


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits(decoder: Transformer, dtype: torch.dtype, batch: int):
    model = decoder.to(dtype)
    ids = tokens(model, batch=batch)
    expected = model(ids).logits
    logits = run(model, ids, model.new_cache(batch, LENGTH), [7, 1, 1, 9, 2, 3])
    assert logits.dtype == dtype
    # One row and many rows are summed in different orders, so a result may round to either of two
    # neighbours, eps apart: with two or three layers the whole stays within a few of these steps,
    # where a token at a wrong position or a lost key changes it by about its own size.
    error = (logits.float() - expected.float()).norm() / expected.float().norm()
    assert error < 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("batch", [1, 3])
def test_crop_and_continue(decoder: Transformer, batch: int):
    ids = tokens(decoder, batch=batch)
    other = (ids + 1) % decoder.config.vocab_size
    cache = decoder.new_cache(batch, LENGTH)
    decoder(torch.cat((ids[:, :9], other[:, 9:20]), dim=1), cache=cache)
    cache.crop(9)
    continued = run(decoder, ids[:, 9:], cache, [4, 1, LENGTH - 14])
    assert_close(continued, decoder(ids).logits[:, 9:], atol=1e-5, rtol=1e-5)


def test_reset_and_reuse(decoder: Transformer):
    ids = tokens(decoder)
    cache = decoder.new_cache(BATCH, LENGTH)
    decoder((ids + 1) % decoder.config.vocab_size, cache=cache)
    cache.reset()
    assert cache.length == cache.nbytes_used == 0
    assert_close(run(decoder, ids, cache, [LENGTH]), decoder(ids).logits, atol=1e-5, rtol=1e-5)


def test_rows_of_a_batch_do_not_meet(decoder: Transformer):
    ids = tokens(decoder, batch=3)
    together = run(decoder, ids, decoder.new_cache(3, LENGTH), [9, 1, 1, LENGTH - 11])
    for row in range(3):
        alone = run(decoder, ids[row : row + 1], decoder.new_cache(1, LENGTH), [LENGTH])
        assert_close(together[row : row + 1], alone, atol=1e-5, rtol=1e-5)


def test_padding_behind_a_cache(decoder: Transformer):
    """Row 1 ends early; its padding must not change the logits of its real tokens."""
    ids, real = tokens(decoder), torch.ones(BATCH, LENGTH, dtype=torch.long)
    real[1, 15:] = 0
    cache = decoder.new_cache(BATCH, LENGTH)
    first = decoder(ids[:, :12], cache=cache, attention_mask=real[:, :12]).logits
    second = decoder(ids[:, 12:], cache=cache, attention_mask=real).logits
    alone = decoder(ids[1:, :15]).logits
    joined = torch.cat((first, second), dim=1)
    assert_close(joined[1:, :15], alone, atol=1e-5, rtol=1e-5)


def test_the_record_shows_new_queries_against_all_keys(decoder: Transformer):
    ids, config = tokens(decoder), decoder.config
    cache = decoder.new_cache(BATCH, LENGTH)
    decoder(ids[:, :20], cache=cache)
    behind = decoder(ids[:, 20:], cache=cache, record=True)
    whole = decoder(ids, record=True)
    assert len(behind.records) == config.n_layers
    for cached, full in zip(behind.records, whole.records, strict=True):
        assert cached.q.shape == (BATCH, config.n_heads, 3, config.d_head)
        assert cached.k.shape == (BATCH, config.kv_heads, LENGTH, config.d_head)
        assert cached.weights.shape == (BATCH, config.n_heads, 3, LENGTH)
        assert_close(cached.weights, full.weights[:, :, 20:], atol=1e-5, rtol=0)


def test_a_record_outlives_the_cache_it_was_made_with(decoder: Transformer):
    ids = tokens(decoder)
    other = (ids + 1) % decoder.config.vocab_size
    cache = decoder.new_cache(BATCH, LENGTH)
    decoder(ids[:, :7], cache=cache)
    records = decoder(ids[:, 7:12], cache=cache, record=True).records
    before = copy.deepcopy(records)
    cache.crop(3)
    decoder(other[:, 3:LENGTH], cache=cache)  # writes over the rows of the record
    assert not torch.equal(cache.layer(0)[0][:, :, :12], before[0].k)
    for record, copied in zip(records, before, strict=True):
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, getattr(copied, field.name)), field.name


def test_bytes_equal_the_formula(decoder: Transformer):
    config = decoder.config
    cache = decoder.new_cache(BATCH, 17)
    sizes = {
        "n_layers": config.n_layers,
        "n_kv_heads": config.kv_heads,
        "head_size": config.d_head,
        "batch_size": BATCH,
        "bytes_per_value": 4,
    }
    assert cache.nbytes == kv_cache_bytes(n_tokens=17, **sizes)
    decoder(tokens(decoder, 5), cache=cache)
    assert cache.nbytes_used == kv_cache_bytes(n_tokens=5, **sizes)
    k, v = cache.layer(1)
    assert k.shape == v.shape == (BATCH, config.kv_heads, 5, config.d_head)


def test_key_and_value_sizes_may_differ():
    cache = KVCache(2, 3, 11, key_shape=(1, 5), value_shape=(1, 7), dtype=torch.float16)
    assert cache.nbytes == 2 * 3 * 11 * (5 + 7) * 2
    k, v = cache.update(0, torch.ones(3, 1, 4, 5), torch.ones(3, 1, 4, 7))
    assert k.shape == (3, 1, 4, 5)
    assert v.shape == (3, 1, 4, 7)
    assert cache.length == 0  # rows count once the last layer has its own
    cache.update(1, torch.ones(3, 1, 4, 5), torch.ones(3, 1, 4, 7))
    assert cache.length == 4


def test_type_follows_the_model(decoder: Transformer):
    half = decoder.to(torch.bfloat16)
    cache = half.new_cache(1, 9)
    half(tokens(half, 4)[:1], cache=cache)
    assert cache.layer(0)[0].dtype == torch.bfloat16


def test_overflow_and_misfits_name_the_numbers(decoder: Transformer):
    ids = tokens(decoder)
    cache = decoder.new_cache(BATCH, 20)
    with pytest.raises(ValueError, match="holds 0 of at most 20 tokens: no room for 23 more"):
        decoder(ids, cache=cache)
    assert cache.length == 0
    decoder(ids[:, :18], cache=cache)
    with pytest.raises(ValueError, match="holds 18 of at most 20 tokens: no room for 5 more"):
        decoder(ids[:, 18:], cache=cache)
    assert_close(  # the failed call has changed nothing
        decoder(ids[:, 18:20], cache=cache).logits,
        decoder(ids[:, :20]).logits[:, 18:],
        atol=1e-5,
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="crop a cache of 20 tokens to 21"):
        cache.crop(21)
    with pytest.raises(ValueError, match="do not fit a cache of shape"):
        decoder(ids[:1, :2], cache=decoder.new_cache(BATCH, 20))
    limit = decoder.config.context_length
    with pytest.raises(ValueError, match=f"{limit + 1} tokens exceeds the context length"):
        decoder.new_cache(1, limit + 1)
    with pytest.raises(ValueError, match="batch_size=0"):
        decoder.new_cache(0, 5)


def test_a_bidirectional_model_refuses_a_cache():
    model = build("bert")
    with pytest.raises(ValueError, match="bidirectional"):
        model(tokens(model), cache=model.new_cache(BATCH, LENGTH))
