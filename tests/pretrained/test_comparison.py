"""Comparing our core with transformers: differences in each layer."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import pretrained
from pretrained.comparison import compare, differences, largest_difference
from tests.helpers.bundled_models import ENCODER


# On one thread both agree exactly, and zeros prove little, so change the weights as well.
@pytest.mark.parametrize("change", [1.0, 1.001])
def test_minilm_against_a_direct_computation(change: float) -> None:
    model = pretrained.load(ENCODER)
    with torch.no_grad():
        for parameter in model.core.parameters():
            parameter.mul_(change)
    ids = model.tokenizer.encode("Five boats, one lamp").ids
    result = compare(model.core, model.reference, ids)
    assert result.reference == "BertModel"
    assert result.logits is None
    assert len(result.weights) == len(result.hidden) == 6
    with torch.no_grad():
        theirs = model.reference(
            torch.tensor([ids]), output_attentions=True, output_hidden_states=True
        )
        ours = model.core(torch.tensor([ids]), record=True)
    for layer in range(6):
        difference = (ours.records[layer].weights - theirs.attentions[layer]).abs().max()
        assert result.weights[layer] == float(difference)
        difference = (ours.hidden_states[layer + 1] - theirs.hidden_states[layer + 1]).abs().max()
        assert result.hidden[layer] == float(difference)
        assert result.hidden_sizes[layer] == float(ours.hidden_states[layer + 1].abs().max())
    assert (result.largest < 1e-4) is (change == 1.0)


def test_gpt2_comparison_includes_logits_and_final_norm(models: Path, tiny_gpt2: Path) -> None:
    shutil.copytree(tiny_gpt2, models / "tiny")
    model = pretrained.load("tiny")
    result = compare(model.core, model.reference, (5, 6, 7, 8))
    assert result.reference == "GPT2LMHeadModel"
    assert result.logits is not None
    assert result.largest < 1e-4
    # a core with different results is detected
    broken = model.core(torch.tensor([[5, 6, 7, 9]]), record=True)
    with torch.no_grad():
        theirs = model.reference(
            torch.tensor([[5, 6, 7, 8]]), output_attentions=True, output_hidden_states=True
        )
    found = differences(broken, theirs, "x")
    assert found.embedding > 1e-3
    assert found.hidden[-1] > 1e-3
    assert found.logits is not None
    assert found.logits > 1e-3


def test_rejects_different_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3,\)"):
        largest_difference(torch.zeros(2, 3), torch.zeros(3))
    model = pretrained.load(ENCODER)
    ours = replace(model.core(torch.tensor([[101, 102]]), record=True), logits=None)
    with pytest.raises(ValueError, match="6 layers.*0 attention maps"):
        differences(ours, SimpleNamespace(attentions=(), hidden_states=()), "x")
