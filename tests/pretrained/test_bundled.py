"""Bundled weights, offline: the core matches the reference model in every layer."""

import functools

import pytest
import torch
from torch.testing import assert_close

import pretrained
from attention_core import generate
from pretrained import Pretrained
from tests.helpers.bundled_models import DECODER, ENCODER

SENTENCE = "The animal didn't cross the street because it was too tired"
PROMPT = "The next day is bright"


@functools.cache
def loaded(name: str) -> Pretrained:
    """Load on the CPU, even if the machine has a GPU."""
    return pretrained.load(name, device="cpu")


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_attention_of_every_layer(name: str):
    model = loaded(name)
    ids = torch.tensor([model.tokenizer.encode(SENTENCE).ids])
    with torch.inference_mode():
        ours = model.core(ids, record=True)
        theirs = model.reference(ids, output_attentions=True)
    assert len(ours.records) == len(theirs.attentions) == model.spec.n_layers
    for record, attention in zip(ours.records, theirs.attentions, strict=True):
        assert record.weights.shape == (1, model.spec.n_heads, ids.shape[1], ids.shape[1])
        assert_close(record.weights, attention, atol=1e-4, rtol=0)


def test_greedy_tokens_of_three_implementations():
    n_new = 24
    model = loaded(DECODER)
    ids = list(model.tokenizer.encode(PROMPT).ids)
    cached = generate(
        model.core, ids, max_new_tokens=n_new, cache=model.core.new_cache(1, len(ids) + n_new)
    )
    uncached = generate(model.core, ids, max_new_tokens=n_new)
    with torch.inference_mode():
        output = model.reference.generate(
            torch.tensor([ids]),
            max_new_tokens=n_new,
            min_new_tokens=n_new,
            do_sample=False,
            pad_token_id=0,
        )
    assert cached == uncached == output[0, len(ids) :].tolist()
    assert len(cached) == n_new
    text = model.tokenizer.decode(cached)
    assert text.startswith(" and sunny, with a gentle breeze")


def test_pronoun_head_of_minilm():
    model = loaded(ENCODER)
    tokens = model.tokenizer.encode(SENTENCE)
    with torch.inference_mode():
        records = model.core(torch.tensor([tokens.ids]), record=True).records
    it, animal, tired = (tokens.pieces.index(word) for word in ("it", "animal", "tired"))
    assert float(records[3].weights[0, 1, it, animal]) > 0.6
    assert float(records[2].weights[0, 1, it, tired]) > 0.6
