"""Multi-head latent attention: two equivalent forms, and a cache of latents."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from attention_core import LatentAttention, Transformer, forward_flops, with_latent_form
from attention_core.positions.rotary import rotary_angles, rotate, rotate_neighbours
from tests.helpers.attention_variants import (
    LATENT,
    LENGTH,
    check_chunks,
    check_crop,
    chunked,
    enlarged_model,
    tokens,
)
from tests.helpers.tiny_models import build

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(params=LATENT)
def model(request: pytest.FixtureRequest) -> Transformer:
    return enlarged_model(LATENT[request.param])


def attention_of(model: Transformer, layer: int = 0) -> LatentAttention:
    attention = model.blocks[layer].attention
    assert isinstance(attention, LatentAttention)
    return attention


@pytest.mark.parametrize("batch", [1, 3])
@chunked
def test_chunked_logits_equal_uncached_logits(model: Transformer, sizes: list[int], batch: int):
    check_chunks(model, model.new_cache(batch, LENGTH + 4), sizes)


def test_crop_and_continue(model: Transformer):
    check_crop(model, model.new_cache(2, LENGTH))


@pytest.mark.parametrize("window", [1, 5, LENGTH])
@chunked
def test_with_a_window_and_a_ring_of_latents(window: int, sizes: list[int]):
    for name in ("expanded", "absorbed"):
        model = enlarged_model(replace(LATENT[name], window=window))
        check_chunks(model, model.new_cache(2, LENGTH), sizes)


def test_both_forms_agree_and_share_weights_and_caches(model: Transformer):
    ids = tokens(model)
    other = with_latent_form(model, absorbed=not model.config.latent.absorbed)
    assert other.config != model.config
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        assert ours.data_ptr() == theirs.data_ptr(), name
        assert not theirs.requires_grad
    assert not other.training
    one, two = model(ids, record=True), other(ids, record=True)
    assert_close(one.logits, two.logits, **CLOSE)
    for ours, theirs in zip(one.records, two.records, strict=True):
        assert_close(ours.scores, theirs.scores, **CLOSE)
        assert_close(ours.weights, theirs.weights, **CLOSE)
        assert_close(ours.output, theirs.output, **CLOSE)
        assert ours.scale == theirs.scale == 1 / math.sqrt(5 + 6)
    cache = model.new_cache(2, LENGTH)
    first = model(ids[:, :9], cache=cache).logits
    second = other(ids[:, 9:], cache=cache).logits
    assert_close(torch.cat((first, second), dim=1), one.logits, **CLOSE)


def test_expanded_record_matches_the_paper():
    """Compute each head from the weights, following equations 9 to 18 of the paper."""
    model = enlarged_model(LATENT["expanded"])
    attention, sizes = attention_of(model), model.config.latent
    x = torch.randn(1, 9, model.config.d_model)
    rotation = rotary_angles(torch.arange(9), 6, model.config.rope_theta, x.dtype)
    allowed = torch.ones(9, 9).tril().bool()
    record = attention.record(x, mask=allowed, positions=rotation)

    down = x[0] @ attention.kv_down.matrix + attention.kv_down.bias
    latent = attention.kv_norm(down[:, :14])
    # rotate as complex numbers whose real and imaginary parts are adjacent values
    turns = torch.polar(
        torch.ones(9, 3), torch.arange(9)[:, None] / 10_000 ** (torch.arange(3) / 3)
    )
    rotated_keys = torch.view_as_complex(down[:, 14:].reshape(9, 3, 2).contiguous()) * turns
    k_rope = torch.cat((rotated_keys.real, rotated_keys.imag), dim=-1)
    small = attention.q_norm(x[0] @ attention.q_down.matrix + attention.q_down.bias)
    contexts = []
    for head in range(4):
        q = small @ attention.q_up.matrix[:, 11 * head : 11 * head + 11]
        rotated = torch.view_as_complex(q[:, 5:].reshape(9, 3, 2).contiguous()) * turns
        q = torch.cat((q[:, :5], rotated.real, rotated.imag), dim=-1)
        key_values = latent @ attention.kv_up.matrix[:, 12 * head : 12 * head + 12]
        k, v = torch.cat((key_values[:, :5], k_rope), dim=-1), key_values[:, 5:]
        scores = q @ k.T
        weights = (scores / math.sqrt(11)).masked_fill(~allowed, -math.inf).softmax(-1)
        for name, expected in {
            "q": q,
            "k": k,
            "v": v,
            "scores": scores,
            "weights": weights,
        }.items():
            assert_close(
                getattr(record, name)[0, head], expected, msg=lambda m, n=name: f"{n}: {m}"
            )
        contexts.append(weights @ v)
    assert_close(record.context[0], torch.stack(contexts), **CLOSE)
    output = torch.cat(contexts, dim=-1) @ attention.out.matrix + attention.out.bias
    assert_close(record.output[0], output, **CLOSE)
    assert sizes.qk_head_size == 11


def test_adjacent_rotary_pairs_are_reordered_half_pairs():
    x, rotation = torch.randn(2, 3, 7, 6), rotary_angles(torch.arange(7), 6, 99.0, torch.float32)
    order = [0, 2, 4, 1, 3, 5]
    assert_close(rotate_neighbours(x, rotation), rotate(x[..., order], rotation))
    assert not torch.allclose(rotate_neighbours(x, rotation), rotate(x, rotation))


@pytest.mark.parametrize(("n_new", "n_keys"), [(11, 11), (3, 11), (1, 11)])
def test_flops_match_counted_matrix_products(model: Transformer, n_new: int, n_keys: int):
    ids = tokens(model, batch=1, length=n_keys)
    cache = model.new_cache(1, n_keys)
    if n_new < n_keys:
        model(ids[:, : n_keys - n_new], cache=cache)
    with FlopCounterMode(display=False) as counter:
        model(ids[:, n_keys - n_new :], cache=cache, last_only=True)
    assert forward_flops(model.config, n_new, n_keys) == counter.get_total_flops()


def test_rejects_models_that_latent_attention_does_not_support():
    config = LATENT["expanded"]
    for name, wrong in (("n_kv_heads", 2), ("head_size", 8), ("positions", "learned")):
        with pytest.raises(ValueError, match=f"{name}.*{wrong}"):
            replace(config, **{name: wrong})
    with pytest.raises(ValueError, match="latent"):
        with_latent_form(build("llama"), absorbed=True)
    x = torch.ones(1, 2, config.d_model)
    with pytest.raises(ValueError, match="memory"):
        attention_of(enlarged_model(config))(x, memory=x)
