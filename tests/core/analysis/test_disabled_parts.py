"""Disabling parts in a pass equals zeroing their weights."""

import copy
import dataclasses
import math

import pytest
import torch

from attention_core import Transformer
from attention_core.analysis.disabled_parts import NOTHING_DISABLED, DisabledParts, run_without
from tests.helpers.tiny_models import TINY, build

TOKENS = torch.tensor([[5, 3, 71, 8, 22, 40, 13], [1, 66, 2, 9, 30, 4, 18]])


def final_hidden(model: Transformer, disabled: DisabledParts = NOTHING_DISABLED) -> torch.Tensor:
    return run_without(model, TOKENS, disabled)[0]


@pytest.mark.parametrize("name", TINY)
def test_disabling_nothing_equals_a_normal_pass(name: str):
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
    disabled = DisabledParts(heads=frozenset({(layer, head)}))
    torch.testing.assert_close(final_hidden(model, disabled), without(TOKENS).hidden)
    assert not torch.allclose(final_hidden(model, disabled), model(TOKENS).hidden, atol=1e-3)


@pytest.mark.parametrize("name", TINY)
def test_disabled_feed_forward_network_equals_zero_weights(name: str):
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
def test_decoder_without_mask_is_bidirectional(name: str):
    model = build(name)
    config = dataclasses.replace(model.config, causal=False)
    bidirectional = Transformer(config).eval().requires_grad_(False)
    bidirectional.load_state_dict(model.state_dict())
    torch.testing.assert_close(
        final_hidden(model, DisabledParts(mask=False)), bidirectional(TOKENS).hidden
    )


@pytest.mark.parametrize("name", TINY)
def test_removing_the_scale_equals_scaling_up_queries(name: str):
    model = build(name)
    longer = copy.deepcopy(model)
    for block in longer.blocks:
        width = block.attention.widths[0]
        for parameter in block.attention.qkv.parameters():
            parameter[:width] *= math.sqrt(model.config.d_head)
    expected = longer(TOKENS).hidden
    # scores are larger, so rounding errors are too
    torch.testing.assert_close(
        final_hidden(model, DisabledParts(scale=False)), expected, rtol=1e-4, atol=1e-4
    )


def test_rejects_missing_layers_and_heads():
    model = build("gpt2")
    with pytest.raises(ValueError, match=r"0.*2.*\[3\]"):
        final_hidden(model, DisabledParts(feed_forwards=frozenset({3})))
    with pytest.raises(ValueError, match=r"0.*3.*\[7\]"):
        final_hidden(model, DisabledParts(heads=frozenset({(0, 7)})))
