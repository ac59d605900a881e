"""Attention variants from MHA to MLA: weights, cache bytes, decoding, drift."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer, cache_bytes
from attention_core.model.variants import with_latent_form
from pages.kv_cache.variants.experiment.forms import (
    AttentionForm,
    build,
    divisors,
    filled_cache,
    group_distances,
    kv_head_readers,
    ladder,
    latent_sizes,
    random_base,
    repeat_tokens,
    with_window,
)
from pages.kv_cache.variants.experiment.pool_kv_heads import mean_of_groups, mean_pooled_kv_heads
from tests.helpers.attention_variants import LENGTH, check_chunks, enlarged_model, feed, tokens
from tests.helpers.tiny_models import TINY

BASE = replace(TINY["llama"], n_heads=6, n_kv_heads=None, head_size=8, attention_bias=False)
LADDER = ladder(BASE)
NAMES = ["MHA", "GQA 3", "GQA 2", "MQA", "MLA"]


@pytest.fixture(scope="module")
def base() -> Transformer:
    return enlarged_model(BASE)


def build_variant(base: Transformer, variant: AttentionForm) -> Transformer:
    """A model with latent weights that are large enough for uneven attention."""
    model = build(base, variant, seed=5)
    if variant.config.latent is not None:
        generator = torch.Generator().manual_seed(2)
        for name, weight in model.named_parameters():
            if ".attention." in name and ".out." not in name and weight.dim() == 2:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
    return model


def test_variants_go_from_mha_to_mqa_to_mla():
    assert [variant.name for variant in LADDER] == NAMES
    assert [variant.config.kv_heads for variant in LADDER[:-1]] == [6, 3, 2, 1]
    latent = LADDER[-1].config.latent
    assert latent is not None
    # DeepSeek's proportions: 512 and 64 for heads of size 128.
    assert (latent.kv_rank, latent.rope_head_size, latent.v_head_size) == (32, 4, 8)
    full_size = latent_sizes(128)
    assert (full_size.kv_rank, full_size.rope_head_size) == (512, 64)
    assert [variant.numbers_per_token for variant in LADDER] == [96, 48, 32, 16, 36]
    assert divisors(12) == (12, 6, 4, 3, 2, 1)
    assert kv_head_readers(6, 2) == ((0, 1, 2), (3, 4, 5))
    # The paper equates these proportions with 2.25 groups.
    assert LADDER[-1].numbers_per_token / LADDER[3].numbers_per_token == 2.25


@pytest.mark.parametrize("variant", LADDER, ids=NAMES)
def test_cache_bytes_and_decoding_of_every_variant(base: Transformer, variant: AttentionForm):
    model = build_variant(base, variant)
    cache = model.new_cache(2, 31)
    check_chunks(model, cache, [7, 1, 1, 9, 2, 3])
    assert cache.nbytes_used == cache_bytes(variant.config, LENGTH, batch_size=2, bytes_per_value=4)
    assert cache.nbytes_used == 2 * 2 * LENGTH * variant.numbers_per_token * 4


@pytest.mark.parametrize("variant", [*LADDER, with_window(LADDER[0], 7)], ids=[*NAMES, "window"])
def test_cache_only_prefill_matches_a_full_pass(base: Transformer, variant: AttentionForm):
    model = build_variant(base, variant)
    full_cache, ids = model.new_cache(2, LENGTH), tokens(model)
    model(ids, cache=full_cache)
    cache_only = filled_cache(model, ids)
    assert (cache_only.length, cache_only.nbytes_used) == (LENGTH, full_cache.nbytes_used)
    for layer in range(model.config.n_layers):
        assert_close(cache_only.layer(layer), full_cache.layer(layer), atol=0, rtol=0)


def test_cache_only_prefill_requires_pre_norm():
    model = enlarged_model(replace(BASE, norm_order="post"))
    with pytest.raises(ValueError, match='must be "pre", got "post"'):
        filled_cache(model, tokens(model))


def test_variants_share_all_weights_except_keys_and_values(base: Transformer):
    own = dict(base.named_parameters())
    for variant in (*LADDER, with_window(LADDER[0], 7)):
        for name, weight in build(base, variant, seed=1).named_parameters():
            shared = ".attention." not in name or name.endswith("out.weight")
            shared |= variant.config.kv_heads == 6 and variant.config.latent is None
            assert (name in own and weight.data_ptr() == own[name].data_ptr()) == shared, name
    copied = mean_pooled_kv_heads(base, 2)
    shared_model = mean_pooled_kv_heads(base, 2, share=True)
    ids = tokens(base)
    assert torch.equal(copied(ids).hidden, shared_model(ids).hidden)


def test_first_layer_group_keys_are_means(base: Transformer):
    ids = tokens(base)
    all_keys = base(ids, record=True).records[0].k
    grouped = build(base, LADDER[2], seed=1)(ids, record=True).records[0].k
    means = all_keys.unflatten(1, (2, 3)).mean(2)
    assert_close(grouped, means, atol=1e-5, rtol=1e-5)
    assert_close(mean_of_groups(all_keys, 2, dim=-3), means)
    assert_close(mean_of_groups(all_keys.transpose(1, 2), 2, dim=-2), means.transpose(1, 2))


def test_absorbed_latent_attention_matches_the_expanded_form(base: Transformer):
    expanded = build_variant(base, LADDER[-1])
    absorbed = with_latent_form(expanded, absorbed=True)
    ids = tokens(base)
    cache = expanded.new_cache(2, LENGTH)
    expanded(ids[:, :-1], cache=cache)
    mixed = absorbed(ids[:, -1:], cache=cache).logits
    assert_close(mixed, expanded(ids).logits[:, -1:], atol=1e-5, rtol=1e-5)
    repeat = feed(absorbed, ids, absorbed.new_cache(2, LENGTH), [9, LENGTH - 9])
    assert_close(repeat, expanded(ids).logits, atol=1e-5, rtol=1e-5)


def test_seed_determines_the_weights():
    one, same, other = (random_base(BASE, seed=seed) for seed in (3, 3, 4))
    ids = tokens(one)
    assert torch.equal(one(ids).hidden, same(ids).hidden)
    assert not torch.allclose(one(ids).hidden, other(ids).hidden)
    latents = [build(one, LADDER[-1], seed=seed)(ids).hidden for seed in (1, 1, 2)]
    assert torch.equal(latents[0], latents[1])
    assert not torch.allclose(latents[0], latents[2])
    assert repeat_tokens(one, [4, 5, 6], 7).tolist() == [[4, 5, 6, 4, 5, 6, 4]]


def test_rejects_invalid_variants(base: Transformer):
    with pytest.raises(ValueError, match="got 2"):
        ladder(replace(BASE, n_kv_heads=2))
    with pytest.raises(ValueError, match="got 6"):
        latent_sizes(6)
    with pytest.raises(ValueError, match="share 4"):
        kv_head_readers(6, 4)
    with pytest.raises(ValueError, match="MQA differs"):
        build(base, AttentionForm("MQA", replace(LADDER[3].config, d_ff=40)), seed=0)


def test_distances_within_and_across_groups():
    # Head 0 attends to key 0, head 1 to key 1. Heads 2 and 3 split theirs between keys 2 and 3.
    weights = torch.zeros(4, 2, 4)
    weights[0, :, 0] = weights[1, :, 1] = 1.0
    weights[2:, :, 2:] = 0.5
    within, across = group_distances(weights, 2)
    assert within == pytest.approx(0.5)  # The distances are 1 and 0.
    assert across == pytest.approx(1.0)
    assert group_distances(weights, 4)[1] is None
