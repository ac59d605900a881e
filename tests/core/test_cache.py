"""Logits with a cache equal logits without one, however the tokens are split."""

import copy
import dataclasses

import pytest
import torch
from torch.testing import assert_close

from attention_core import KVCache, SlidingCache, Transformer
from tests.helpers.tiny_models import build

BATCH, LENGTH = 2, 23


def tokens(model: Transformer, length: int = LENGTH, batch: int = BATCH) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def run(model: Transformer, ids: torch.Tensor, cache: KVCache, sizes: list[int]) -> torch.Tensor:
    """Run a model on chunks of the given sizes and return all logits."""
    parts = [model(chunk, cache=cache).logits for chunk in ids.split(sizes, dim=1)]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "sizes",
    [[LENGTH], [1] * LENGTH, [7, 1, 1, 9, 2, 3], [1, 22], [22, 1]],
    ids=["single chunk", "one by one", "uneven", "one then many", "many then one"],
)
def test_chunked_logits_equal_uncached_logits(decoder: Transformer, sizes: list[int], batch: int):
    ids = tokens(decoder, batch=batch)
    expected = decoder(ids).logits
    cache = decoder.new_cache(batch, LENGTH + 4)
    assert_close(run(decoder, ids, cache, sizes), expected, atol=1e-5, rtol=1e-5)
    assert cache.length == LENGTH


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_dtypes(decoder: Transformer, dtype: torch.dtype, batch: int):
    model = decoder.to(dtype)
    ids = tokens(model, batch=batch)
    expected = model(ids).logits
    logits = run(model, ids, model.new_cache(batch, LENGTH), [7, 1, 1, 9, 2, 3])
    assert logits.dtype == dtype
    # Sums over one row and many rows run in different orders, so results can differ by eps.
    # After two or three layers the error is a few eps, while a wrong position or a lost key
    # changes the result by about its own size.
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


def test_record_has_new_queries_and_all_keys(decoder: Transformer):
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


def test_record_does_not_change_with_the_cache(decoder: Transformer):
    ids = tokens(decoder)
    other = (ids + 1) % decoder.config.vocab_size
    cache = decoder.new_cache(BATCH, LENGTH)
    decoder(ids[:, :7], cache=cache)
    records = decoder(ids[:, 7:12], cache=cache, record=True).records
    before = copy.deepcopy(records)
    cache.crop(3)
    # overwrites the cached rows that the record was made from
    decoder(other[:, 3:LENGTH], cache=cache)
    assert not torch.equal(cache.layer(0)[0][:, :, :12], before[0].k)
    for record, copied in zip(records, before, strict=True):
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, getattr(copied, field.name)), field.name


def test_rejects_overflow_and_mismatched_shapes(decoder: Transformer):
    ids = tokens(decoder)
    cache = decoder.new_cache(BATCH, 20)
    decoder(ids[:, :18], cache=cache)
    with pytest.raises(ValueError, match="18.*20.*5"):
        decoder(ids[:, 18:], cache=cache)
    assert_close(  # the failed call didn't change the cache
        decoder(ids[:, 18:20], cache=cache).logits,
        decoder(ids[:, :20]).logits[:, 18:],
        atol=1e-5,
        rtol=1e-5,
    )
    key_shape, value_shape = decoder.config.cache_shapes
    misfits = {"key_shape": (key_shape[0], 3), "value_shape": value_shape}
    other_shape = KVCache(decoder.config.n_layers, BATCH, 20, **misfits)
    other_type = copy.deepcopy(decoder).bfloat16().new_cache(BATCH, 20)
    k, limit = torch.ones(BATCH, 2, 4, 3), decoder.config.context_length
    one_layer = KVCache(1, BATCH, 20, key_shape=(2, 3))
    for numbers, call in {
        "20.*21": lambda: cache.crop(21),
        r"n_tokens.*1\.5": lambda: cache.crop(1.5),
        "n_tokens.*-1": lambda: cache.crop(-1),
        "keys and values": lambda: decoder(ids[:, :2], cache=other_shape),
        "float32.*bfloat16": lambda: decoder(ids[:, :2], cache=other_type),
        "2 new tokens": lambda: decoder(ids[:1, :2], cache=decoder.new_cache(BATCH, 20)),
        r"2, 1, 3\).*4": lambda: one_layer.update(0, k, k[:, :, :1]),
        f"{limit + 1}": lambda: decoder.new_cache(1, limit + 1),
    }.items():
        with pytest.raises(ValueError, match=numbers):
            call()


def test_bidirectional_model_rejects_a_cache():
    model = build("bert")
    with pytest.raises(ValueError, match="bidirectional"):
        model(tokens(model), cache=model.new_cache(BATCH, LENGTH))


@pytest.mark.parametrize("window", [None, 5])
def test_cache_is_detached_from_the_graph(window: int | None):
    """After two passes, backward treats rows of the first as constants."""
    cache = SlidingCache(3, 2, 12, key_shape=(4, 6), value_shape=(4, 5), window=window)
    weight = torch.ones(7, 11, requires_grad=True)
    loss = torch.zeros(())
    for _ in range(2):
        for layer in range(cache.n_layers):
            k, v = (torch.ones(2, 4, 5, 7) @ weight).split((6, 5), dim=-1)
            keys, values = cache.update(layer, k, v)
            loss = loss + keys.square().sum() + values.square().sum()
    assert not any(rows.requires_grad for layer in range(3) for rows in cache.layer(layer))
    loss.backward()
    # d(7 w)^2 for 2 x 4 x 5 rows, 3 layers and 2 passes
    assert_close(weight.grad, torch.full((7, 11), 2 * 7.0 * 2 * 4 * 5 * 3 * 2))
    copy.deepcopy(cache)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_gradient_treats_cached_rows_as_constants(name: str):
    """Compare with a first pass that runs without gradients."""
    model = build(name).requires_grad_(True)
    ids = tokens(model, 9, 2)

    def gradients(first_pass_learns: bool) -> list[torch.Tensor]:
        cache = model.new_cache(2, 9)
        with torch.set_grad_enabled(first_pass_learns):
            first = model(ids[:, :5], cache=cache).logits
        second = model(ids[:, 5:], cache=cache).logits
        model.zero_grad()
        second.square().mean().backward(retain_graph=True)
        results = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        if first_pass_learns:
            # the two passes don't interfere
            (first.square().mean() + second.square().mean()).backward()
        return results

    for one, other in zip(gradients(True), gradients(False), strict=True):
        assert_close(one, other, atol=0, rtol=0)


@pytest.mark.parametrize("window", [None, 5])
def test_cache_created_in_inference_mode_works_outside_it(window: int | None):
    model = build("gpt2")
    model = model if window is None else with_window(model, window)
    ids = tokens(model, 12, 1)
    expected = model(ids).logits
    with torch.inference_mode():
        cache = model.new_cache(1, 12)
        parts = [model(ids[:, :7], cache=cache).logits]
    parts.append(model(ids[:, 7:9], cache=cache).logits)
    with torch.inference_mode():
        parts.append(model(ids[:, 9:10], cache=cache).logits)
    with torch.no_grad():
        parts.append(model(ids[:, 10:], cache=cache).logits)
    assert_close(torch.cat([part.clone() for part in parts], 1), expected, atol=1e-5, rtol=1e-5)


def with_window(model: Transformer, window: int) -> Transformer:
    windowed = Transformer(dataclasses.replace(model.config, window=window))
    windowed.load_state_dict(model.state_dict())
    return windowed.eval().requires_grad_(False)


@pytest.mark.parametrize("wrong", [0, 2.0, True])
@pytest.mark.parametrize("name", ["n_layers", "batch_size", "max_length", "window"])
def test_rejects_sizes_that_are_not_integers(name: str, wrong: object):
    sizes = {"n_layers": 2, "batch_size": 1, "max_length": 9, "window": 4, name: wrong}
    with pytest.raises(ValueError, match=f"{name}.*{wrong}"):
        SlidingCache(**sizes, key_shape=(3, 5))  # type: ignore[arg-type]


def test_rejects_shapes_that_are_not_integers():
    for shapes in ({"key_shape": (0, 5)}, {"key_shape": (3, 5), "value_shape": (3, 2.0)}):
        with pytest.raises(ValueError, match="_shape"):
            KVCache(2, 1, 9, **shapes)  # type: ignore[arg-type]
