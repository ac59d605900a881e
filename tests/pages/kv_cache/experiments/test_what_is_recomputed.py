"""Compare recomputed entries to real passes, and counts to formulas."""

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.attend import attend
from attention_core.costs.formulas import forward_flops
from attention_core.generation import generate
from attention_core.masks import causal_mask
from pages.kv_cache.what_is_recomputed.experiment import (
    CONTEXT,
    KEYS,
    LOGITS,
    QUERIES,
    SCORES,
    VALUES,
    WEIGHTS,
    bytes_needed,
    change_of_old_part,
    grow,
    last_context,
    old_rows_by_layer,
    overwrite_rows,
    parts,
    rows_read,
)
from tests.helpers.tiny_models import TINY, build

IDS = [3, 14, 15, 9, 26]


def test_steps_match_a_generation(decoder: Transformer):
    steps = list(grow(decoder, IDS, n_steps=3, n_columns=4))
    new = [step.token_id for step in steps]
    assert new == generate(decoder, IDS, max_new_tokens=3)
    assert [(step.n_tokens, step.n_before) for step in steps] == [(5, 0), (6, 5), (7, 6)]
    assert sum(step.nbytes for step in steps) == bytes_needed(decoder.config, 5, 3)
    step = steps[-1]
    with torch.inference_mode():
        full_pass = decoder(torch.tensor([IDS + new[:2]]), record=True)
    config, layer, head = decoder.config, 1, config_head(decoder)
    record, shared = full_pass.records[layer], config.n_heads // config.kv_heads
    by_name = step.full.head(layer, head)
    assert_close(by_name[QUERIES], record.q[0, head])
    assert_close(by_name[KEYS], record.k[0, head // shared])
    assert_close(by_name[VALUES], record.v[0, head // shared])
    assert_close(by_name[SCORES], record.scores[0, head])
    assert_close(by_name[WEIGHTS], record.weights[0, head])
    assert_close(by_name[CONTEXT], record.context[0, head])
    assert_close(step.top_logits, full_pass.logits[0][:, step.top_ids])
    assert list(step.likeliest_ids) == list(full_pass.logits[0].argmax(-1))
    assert_close(step.likeliest, full_pass.logits[0].softmax(-1).amax(-1))
    # The cached path computed one row against the same keys.
    cached = step.cached.head(layer, head)
    assert {name: tuple(cached[name].shape) for name in (QUERIES, KEYS, WEIGHTS)} == {
        QUERIES: (1, config.d_head),
        KEYS: (7, config.d_head),
        WEIGHTS: (1, 7),
    }
    assert_close(cached[KEYS], by_name[KEYS], atol=1e-5, rtol=1e-5)
    assert_close(cached[CONTEXT][0], by_name[CONTEXT][-1], atol=1e-5, rtol=1e-5)
    assert_close(step.cached_logits, step.top_logits[-1], atol=1e-4, rtol=1e-4)
    assert 0 <= step.cache_difference < 1e-4 * step.largest_logit


def config_head(model: Transformer) -> int:
    """The last head. Its key/value head has a different index in grouped models."""
    return model.config.n_heads - 1


def test_boxed_entries_existed_in_the_previous_step(decoder: Transformer):
    first, second = grow(decoder, IDS, n_steps=2)
    for name, before in first.full.parts.items():
        change = change_of_old_part(before, second.full.parts[name], name)
        assert change.shape == before.shape[:2]
        assert float(change.max()) < 1e-4 * max(1.0, float(before.abs().max()))
        # The comparison detects a single entry that did change.
        corrupted = before.clone()
        corrupted[-1, -1, 2, 1] += 3.0
        assert float(change_of_old_part(corrupted, second.full.parts[name], name)[-1, -1]) > 2.9


def test_old_rows_change_only_in_an_encoder(decoder: Transformer):
    change, largest = old_rows_by_layer(decoder, IDS[:-1], IDS, 4)
    assert change.shape == largest.shape == (decoder.config.n_layers,)
    assert float((change / largest).max()) < 1e-5
    encoder = build("bert")
    change, largest = old_rows_by_layer(encoder, IDS[:-1], IDS, 4)
    # Layer 0 reads embeddings, which don't depend on neighboring tokens.
    assert float(change[0]) < 1e-5
    assert float((change / largest)[1:].min()) > 1e-2


def test_old_keys_and_values_are_read_but_old_queries_are_not(decoder: Transformer):
    step = list(grow(decoder, IDS, n_steps=2))[-1]
    scale = decoder.config.d_head**-0.5
    matrices = step.full.head(1, 0)
    q, k, v = matrices[QUERIES], matrices[KEYS], matrices[VALUES]
    assert_close(last_context(q, k, v, scale=scale), matrices[CONTEXT][-1])
    result = rows_read(q, k, v, scale=scale)
    assert result[QUERIES].tolist() == [False] * 5 + [True]
    assert result[KEYS].tolist() == result[VALUES].tolist() == [True] * 6
    for fill in (0.0, torch.nan):
        same = last_context(overwrite_rows(q, 5, fill), k, v, scale=scale)
        assert torch.equal(same, last_context(q, k, v, scale=scale))
    other = last_context(q, overwrite_rows(k, 5, 0.0), v, scale=scale)
    assert float((other - matrices[CONTEXT][-1]).abs().max()) > 1e-3
    assert last_context(q, k, overwrite_rows(v, 1, torch.nan), scale=scale).isnan().all()


def test_keys_and_values_outside_the_window_are_not_read(decoder: Transformer):
    matrices = next(grow(decoder, IDS, n_steps=1)).full.head(1, 0)
    q, k, v = matrices[QUERIES], matrices[KEYS], matrices[VALUES]
    n, scale = len(IDS), decoder.config.d_head**-0.5
    result = rows_read(q, k, v, scale=scale, window=2)
    assert result[QUERIES].tolist() == [False] * (n - 1) + [True]
    assert result[KEYS].tolist() == result[VALUES].tolist() == [False] * (n - 2) + [True] * 2
    mask = causal_mask(n, n, window=2)
    full_context = attend(q, k, v, mask=mask, scale=scale).context[-1]
    assert_close(last_context(q, k, v, scale=scale, window=2), full_context)
    assert_close(last_context(q, k, v, scale=scale, window=99), matrices[CONTEXT][-1])


@pytest.mark.parametrize("name", ["gpt2", "llama", "llama-tied"])
def test_products_add_up_to_the_model_flops(name: str):
    config = TINY[name]
    result = parts(config, 7, 6, "model")
    assert 2 * sum(part.products for part in result) == forward_flops(config, 7, 7, n_logits=7)
    assert 2 * sum(part.cached_products for part in result) == forward_flops(config, 1, 7)
    layer = {part.name: part for part in parts(config, 7, 6, "layer")}
    head = {part.name: part for part in parts(config, 7, 6)}
    assert layer[QUERIES].products == config.n_heads * head[QUERIES].products
    assert layer[KEYS].products == config.kv_heads * head[KEYS].products
    assert layer[SCORES].n_entries == config.n_heads * 49
    for part in result:
        if part.name != LOGITS:
            assert part.products == config.n_layers * layer[part.name].products


def test_counts_match_explicit_counting():
    config = TINY["gpt2"]
    results = {part.name: part for part in parts(config, 7, 5)}
    scores = torch.ones(7, 7)
    boxed, hidden = scores[:5, :5].numel(), scores[:5, 5:].numel()
    for name in (SCORES, WEIGHTS):
        assert (results[name].n_entries, results[name].n_repeated) == (49, boxed)
        assert (results[name].n_hidden, results[name].n_new) == (hidden, scores[5:].numel())
    assert (results[CONTEXT].n_repeated, results[CONTEXT].n_new) == (5 * 6, 2 * 6)
    assert results[SCORES].products == 7 * 7 * 6  # D products per entry.
    assert all(part.n_repeated == part.n_hidden == 0 for part in parts(config, 7, 0, "model"))
    assert all(part.products == part.cached_products for part in parts(config, 7, 0, "model"))


def test_rejected_requests_name_the_limits():
    model = build("gpt2")
    with pytest.raises(ValueError, match="got 0 tokens"):
        grow(model, [], n_steps=2)
    with pytest.raises(ValueError, match="42 tokens .* 41"):
        grow(model, IDS, n_steps=38)
    with pytest.raises(ValueError, match="got 84"):
        grow(model, IDS, n_steps=1, n_columns=84)
    with pytest.raises(ValueError, match="causal"):
        grow(build("bert"), IDS, n_steps=1)
    with pytest.raises(ValueError, match="7 of 7"):
        parts(model.config, 7, 7)
