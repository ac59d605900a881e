"""Switching parts off in a pass equals switching them off in the weights."""

import copy
import dataclasses
import math

import pytest
import torch

from attention_core import Transformer
from attention_core.analysis.disabled_parts import NOTHING_DISABLED, DisabledParts, run_without
from tests.helpers.tiny_models import TINY, build

TOKENS = torch.tensor([[5, 3, 71, 8, 22, 40, 13], [1, 66, 2, 9, 30, 4, 18]])


def hidden(model: Transformer, switched: DisabledParts = NOTHING_DISABLED) -> torch.Tensor:
    return run_without(model, TOKENS, switched)[0]


@pytest.mark.parametrize("name", TINY)
def test_with_nothing_off_it_is_the_model_s_own_pass(name: str):
    model = build(name)
    last, layers = run_without(model, TOKENS)
    output = model(TOKENS, record=True)
    torch.testing.assert_close(last, output.hidden, rtol=0, atol=0)
    for ours, theirs in zip(layers, output.layers, strict=True):
        for field in dataclasses.fields(ours):
            if field.name != "attention":
                torch.testing.assert_close(
                    getattr(ours, field.name), getattr(theirs, field.name), rtol=0, atol=0
                )
        torch.testing.assert_close(ours.attention.weights, theirs.attention.weights)


@pytest.mark.parametrize("name", TINY)
def test_disabled_head_equals_zero_output_rows(name: str):
    model = build(name)
    layer, head = 1, 2
    without = copy.deepcopy(model)
    size = model.config.d_head
    without.out_weight(layer)[head * size : (head + 1) * size] = 0.0
    switched = DisabledParts(heads=frozenset({(layer, head)}))
    torch.testing.assert_close(hidden(model, switched), without(TOKENS).hidden)
    assert not torch.allclose(hidden(model, switched), model(TOKENS).hidden, atol=1e-3)


@pytest.mark.parametrize("name", TINY)
def test_a_feed_forward_network_that_is_off_is_one_without_weights(name: str):
    model = build(name)
    without = copy.deepcopy(model)
    for parameter in without.blocks[1].mlp.down.parameters():
        parameter.zero_()
    last, layers = run_without(model, TOKENS, DisabledParts(feed_forwards=frozenset({1})))
    torch.testing.assert_close(last, without(TOKENS).hidden)
    expected = without(TOKENS, record=True).layers[1]
    torch.testing.assert_close(layers[1].mlp_output, torch.zeros_like(expected.mlp_output))
    torch.testing.assert_close(layers[1].mlp_sum, expected.mlp_sum)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_without_the_mask_a_decoder_looks_ahead(name: str):
    model = build(name)
    config = dataclasses.replace(model.config, causal=False)
    free = Transformer(config).eval().requires_grad_(False)
    free.load_state_dict(model.state_dict())
    torch.testing.assert_close(hidden(model, DisabledParts(mask=False)), free(TOKENS).hidden)


@pytest.mark.parametrize("name", TINY)
def test_without_the_scale_queries_count_as_if_they_were_longer(name: str):
    model = build(name)
    longer = copy.deepcopy(model)
    for block in longer.blocks:
        width = block.attention.widths[0]
        for parameter in block.attention.qkv.parameters():
            parameter[:width] *= math.sqrt(model.config.d_head)
    expected = longer(TOKENS).hidden
    # scores are larger, so products of rounded numbers differ slightly more
    torch.testing.assert_close(
        hidden(model, DisabledParts(scale=False)), expected, rtol=1e-4, atol=1e-4
    )


def test_what_a_model_does_not_have_is_refused():
    model = build("gpt2")
    with pytest.raises(ValueError, match=r"0.*2.*\[3\]"):
        hidden(model, DisabledParts(feed_forwards=frozenset({3})))
    with pytest.raises(ValueError, match=r"0.*3.*\[7\]"):
        hidden(model, DisabledParts(heads=frozenset({(0, 7)})))
