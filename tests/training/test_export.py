"""An exported model equals the trained one, in transformers and in the core."""

from dataclasses import replace

import pytest
import torch
import transformers
from torch.testing import assert_close

import pretrained
from pretrained.masked_word import masked_word_head
from training.export import export
from training.models import LanguageModel
from training.recipe import recipe
from training.vocabulary import build_tokenizer

MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the")]
SIZES = {
    "d_model": 40,
    "n_layers": 3,
    "n_heads": 5,
    "d_ff": 72,
    "vocab_size": 261,
    "context_length": 33,
}
TEXT = "the cat in the [MASK] sat"
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=["gpt2", "bert"])
def exported(request, tmp_path, monkeypatch):
    """Return a random model, and the same model loaded from its exported folder."""
    kind = request.param
    model = replace(recipe(kind).model, **SIZES)
    torch.manual_seed(0)
    trained = LanguageModel(model).eval()
    with torch.no_grad():
        for weight in trained.parameters():  # change biases and norms from their initial values
            weight.add_(torch.randn_like(weight) * 0.1)
            weight.copy_(weight.half())  # rounded as in the file
    tokenizer = build_tokenizer(MERGES, ["the the"], size=SIZES["vocab_size"])
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    export(model, trained.state_dict(), tokenizer, tmp_path / f"tiny-{kind}")
    return kind, trained, pretrained.load(f"tiny-{kind}")


def test_core_equals_the_trained_model(exported):
    kind, trained, loaded = exported
    ids = torch.tensor([loaded.tokenizer.encode(TEXT).ids])
    assert_close(loaded.core(ids).hidden, trained.states(ids), **CLOSE)
    if kind == "gpt2":
        assert_close(loaded.core(ids).logits, trained.next_token_logits(ids), **CLOSE)
    else:
        everywhere = torch.ones_like(ids, dtype=torch.bool)
        ours = masked_word_head(loaded)(loaded.core(ids).hidden)[0]
        assert_close(ours, trained.masked_word_logits(ids, everywhere), **CLOSE)


def test_transformers_equals_the_core(exported):
    kind, _, loaded = exported
    expected = {"gpt2": transformers.GPT2LMHeadModel, "bert": transformers.BertForMaskedLM}[kind]
    assert isinstance(loaded.reference, expected)
    ids = torch.tensor([loaded.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        theirs = loaded.reference(ids, output_attentions=True)
        ours = loaded.core(ids, record=True)
        logits = ours.logits if kind == "gpt2" else masked_word_head(loaded)(ours.hidden)
    assert_close(logits, theirs.logits, **CLOSE)
    for record, attention in zip(ours.records, theirs.attentions, strict=True):
        assert_close(record.weights, attention, **CLOSE)


def test_typed_mask_is_only_a_mask_token_for_bert(exported):
    kind, _, loaded = exported
    tokens = loaded.tokenizer.encode(TEXT)
    assert "".join(TEXT[slice(*span)] for span in tokens.spans) == TEXT
    if kind == "bert":
        position = tokens.pieces.index("[MASK]")
        # a word includes the space before it
        assert TEXT[slice(*tokens.spans[position])] == " [MASK]"
        assert tokens.ids[position] == loaded.tokenizer.mask_id == SIZES["vocab_size"] - 1
        assert tokens.special[position]
        assert sum(tokens.special) == 1
    else:
        assert loaded.tokenizer.mask_id is None
        assert loaded.tokenizer.decode(tokens.ids) == TEXT
        assert not any(tokens.special)
        assert loaded.tokenizer.end_ids == {SIZES["vocab_size"] - 2}


def test_transformers_gives_the_same_tokens(exported):
    kind, _, loaded = exported
    tokenizer = transformers.AutoTokenizer.from_pretrained(loaded.folder)
    # our GPT-2 tokenizer reads a typed mask as text, but transformers as a special token
    text = TEXT if kind == "bert" else "the cat in the hat"
    assert tokenizer(text).input_ids == list(loaded.tokenizer.encode(text).ids)
    assert tokenizer.mask_token_id == loaded.tokenizer.mask_id
