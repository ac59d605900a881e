"""Disabling a head equals zeroing its slice of W_O in the transformers model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import pretrained
from attention_core import Hooks
from attention_core.analysis.ablation import (
    HeadChange,
    logits_function,
    make_edit,
    run_with_changes,
)
from pretrained.masked_word import has_masked_word_head, masked_word_head
from pretrained.weights import core_from_reference
from tests.helpers.bundled_models import ENCODER
from tests.helpers.reference_models import TOLERANCE, enlarge, gpt2, ids, llama
from tests.helpers.small_bert import bert, save_bert, zero_head


@pytest.mark.parametrize(
    ("family", "make", "size"), [("gpt2", gpt2, 6), ("llama", llama, 8), ("bert", bert, 4)]
)
def test_zeroed_head_equals_zeroed_slice_of_the_output_matrix(family: str, make: Any, size: int):
    reference = enlarge(make())
    core = core_from_reference(reference)
    tokens = ids(reference, batch=1, length=13)
    plain = core(tokens).hidden[0]
    for layer in range(core.config.n_layers):
        for head in range(core.config.n_heads):
            other = zero_head(reference, family, layer, head, size)
            with torch.no_grad():
                theirs = other(tokens, output_hidden_states=True)
            ours = run_with_changes(core, tokens[0], [[HeadChange(layer, head)]])
            assert_close(ours, theirs.hidden_states[-1], **TOLERANCE)
            if family != "bert":
                assert_close(logits_function(core)(ours), theirs.logits, **TOLERANCE)
            assert float((ours[0] - plain).abs().max()) > 1e-3  # every head has an effect


def test_several_heads_in_several_layers_of_a_batch():
    reference = enlarge(llama())
    core = core_from_reference(reference)
    tokens = ids(reference, batch=2)
    other = zero_head(zero_head(reference, "llama", 0, 5, 8), "llama", 1, 2, 8)
    changes = [HeadChange(0, 5), HeadChange(1, 2)]
    with torch.no_grad():
        ours = core(tokens, hooks=Hooks(edit_heads=make_edit([changes, []]))).logits
        assert_close(ours[0], other(tokens).logits[0], **TOLERANCE)
        assert_close(ours[1], reference(tokens).logits[1], **TOLERANCE)


@pytest.mark.parametrize("tied", [True, False])
def test_masked_word_predictions(models: Path, tied: bool):
    reference = save_bert(models / "tiny-bert", tie_word_embeddings=tied)
    model = pretrained.load("tiny-bert", device="cpu")
    assert has_masked_word_head(model)
    head = masked_word_head(model)
    tokens = torch.tensor([model.tokenizer.encode("the old [MASK] sings .").ids])
    assert model.tokenizer.mask_id in tokens
    other = zero_head(reference, "bert", 1, 4, 4)
    with torch.no_grad():
        assert_close(head(model.core(tokens).hidden), reference(tokens).logits, **TOLERANCE)
        ours = head(run_with_changes(model.core, tokens[0], [[HeadChange(1, 4)]]))
        assert_close(ours, other(tokens).logits, **TOLERANCE)


def test_incomplete_masked_word_head(models: Path, minilm_folder: Path):
    from safetensors.torch import load_file, save_file

    folder = models / "tiny-bert"
    save_bert(folder)
    state = load_file(folder / "model.safetensors")
    save_file(
        {k: v for k, v in state.items() if "dense.bias" not in k or "cls" not in k},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(ValueError, match=r"'cls\.predictions\.transform\.dense\.bias'"):
        masked_word_head(pretrained.load("tiny-bert", device="cpu"))
    state["cls.predictions.bias"] = torch.zeros(7)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"output_bias .* needs shape \(14,\), got \(7,\)"):
        masked_word_head(pretrained.load("tiny-bert", device="cpu"))
    assert json.loads((minilm_folder / "config.json").read_text())["model_type"] == "bert"
    assert not has_masked_word_head(pretrained.load(ENCODER, device="cpu"))
