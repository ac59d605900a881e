"""Pooled key/value heads are group means, and nothing else changes."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer, kv_cache_bytes
from pages.kv_cache.variants.experiment.pool_kv_heads import mean_pooled_kv_heads
from tests.helpers.attention_variants import (
    HEADS,
    LATENT,
    LENGTH,
    check_chunks,
    enlarged_model,
    tokens,
)
from tests.helpers.tiny_models import TINY

# Learned positions, rotary ones, biases in both, and a model that already has grouped heads.
MODELS = {"gpt2": HEADS["gpt2, MHA"], "llama": HEADS["llama, MHA"], "bert": TINY["bert"]}


@pytest.mark.parametrize("name", MODELS)
def test_one_head_per_group_changes_nothing(name: str):
    model = enlarged_model(MODELS[name])
    same = mean_pooled_kv_heads(model, model.config.n_heads)
    ids = tokens(model)
    assert torch.equal(same(ids).hidden, model(ids).hidden)
    assert {p.data_ptr() for p in same.parameters()}.isdisjoint(
        p.data_ptr() for p in model.parameters()
    )


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_group_is_the_mean_of_its_heads(name: str, n_groups: int):
    model = enlarged_model(MODELS[name])
    pooled = mean_pooled_kv_heads(model, n_groups)
    assert pooled.config == replace(model.config, n_kv_heads=n_groups)
    ids = tokens(model)
    # The first layer's input is the same, so only its keys and values change to means.
    ours, before = pooled(ids, record=True).records[0], model(ids, record=True).records[0]
    assert_close(ours.q, before.q)
    size = 6 // n_groups
    for group in range(n_groups):
        members = slice(group * size, (group + 1) * size)
        assert_close(ours.k[:, group], before.k[:, members].mean(1), atol=1e-5, rtol=1e-5)
        assert_close(ours.v[:, group], before.v[:, members].mean(1), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(ours.weights, before.weights, atol=1e-3)
    changed = {
        key
        for key, weight in model.state_dict().items()
        if weight.shape != pooled.state_dict()[key].shape
        or not torch.equal(weight, pooled.state_dict()[key])
    }
    assert changed == {
        f"blocks.{i}.attention.qkv.{k}"
        for i in range(len(model.blocks))
        for k in ("weight", "bias")
    }


def test_pooling_equal_heads_is_lossless():
    """Expand a grouped model to one key/value head per query head, then pool it again."""
    grouped = enlarged_model(HEADS["llama, GQA of 2"])
    widths = (48, 16, 16)
    ungrouped = Transformer(replace(grouped.config, n_kv_heads=6)).eval().requires_grad_(False)
    state = dict(grouped.state_dict())
    for key in [key for key in state if ".qkv." in key]:
        q, *others = state[key].split(widths)
        repeated = [x.unflatten(0, (2, 8)).repeat_interleave(3, 0).flatten(0, 1) for x in others]
        state[key] = torch.cat((q, *repeated))
    ungrouped.load_state_dict(state)
    ids = tokens(grouped)
    assert_close(ungrouped(ids).logits, grouped(ids).logits, atol=1e-5, rtol=1e-5)
    pooled = mean_pooled_kv_heads(ungrouped, 2)
    assert_close(pooled(ids).logits, grouped(ids).logits, atol=1e-5, rtol=1e-5)


def test_pooled_model_generates_with_a_smaller_cache():
    model = enlarged_model(MODELS["llama"])
    pooled = mean_pooled_kv_heads(model, 2)
    cache = pooled.new_cache(2, LENGTH + 4)
    assert cache.nbytes * 3 == model.new_cache(2, LENGTH + 4).nbytes
    assert cache.nbytes == kv_cache_bytes(
        n_layers=2, n_kv_heads=2, head_size=8, n_tokens=27, batch_size=2, bytes_per_value=4
    )
    check_chunks(pooled, cache, [7, 1, 1, 9, 2, 3])
    assert not pooled.training
    assert not any(p.requires_grad for p in pooled.parameters())


@pytest.mark.parametrize("wrong", [0, 4, 12])
def test_group_count_must_divide_head_count(wrong: int):
    with pytest.raises(ValueError, match=f"into {wrong}$"):
        mean_pooled_kv_heads(enlarged_model(MODELS["gpt2"]), wrong)


def test_latent_attention_cannot_be_pooled():
    with pytest.raises(ValueError, match="no key/value heads"):
        mean_pooled_kv_heads(enlarged_model(LATENT["expanded"]), 2)
