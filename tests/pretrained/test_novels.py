"""The GPT-2 and BERT trained on novels: parity, tokens, and file size."""

import pytest
import torch
from torch.testing import assert_close

import pretrained
from pretrained.masked_word import masked_word_head
from pretrained.sources import TRAINED_HERE

pytestmark = pytest.mark.weights

NAMES = ["gpt2-novels", "bert-novels"]
TEXT = "The captain looked at the ship, and the ship looked old. “Why?” said Mary — naïve 🙂"
LARGEST_BYTES = 25_000_000


@pytest.fixture(scope="module", params=NAMES)
def model(request) -> pretrained.Pretrained:
    return pretrained.load(request.param)


def test_found_without_packages_or_folders(model):
    assert model.source.kind == "trained here"
    assert model.source.path == TRAINED_HERE / model.name
    assert model.spec.n_parameters == sum(p.numel() for p in model.core.parameters())
    assert sum(f.stat().st_size for f in model.folder.iterdir()) < LARGEST_BYTES
    entries = {entry.spec.name: entry.state for entry in pretrained.catalog()}
    assert entries[model.name] == "ready"


def test_logits_and_attention_equal_transformers(model):
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        theirs = model.reference(ids, output_attentions=True)
        ours = model.core(ids, record=True)
        logits = ours.logits if model.core.config.causal else masked_word_head(model)(ours.hidden)
    assert_close(logits, theirs.logits, atol=1e-4, rtol=0.0)
    assert len(ours.records) == len(theirs.attentions) == 6
    for record, attention in zip(ours.records, theirs.attentions, strict=True):
        assert record.weights.shape == attention.shape
        assert_close(record.weights, attention, atol=1e-4, rtol=0.0)


def test_both_models_tokenize_text_the_same_way():
    gpt2, bert = (pretrained.load(name).tokenizer for name in NAMES)
    assert gpt2.encode(TEXT) == bert.encode(TEXT)
    assert gpt2.decode(gpt2.encode(TEXT).ids) == TEXT
    assert gpt2.mask_id is None
    assert bert.encode("the [MASK] sat").ids.count(bert.mask_id) == 1
    assert gpt2.encode("the [MASK] sat").ids != bert.encode("the [MASK] sat").ids


def test_model_loaded_in_inference_mode_can_be_modified():
    with torch.inference_mode():
        model = pretrained.load("gpt2-novels", dtype="bfloat16")
    assert not any(weight.is_inference() for weight in model.core.parameters())
