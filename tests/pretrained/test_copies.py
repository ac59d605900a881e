"""Copies of a loaded model: core and tokenizer work as before, with weights of their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import pretrained
from tests.helpers.bundled_models import ENCODER, FIRST_BERT, FIRST_GPT2

# typed special tokens are text for a decoder; a typed [MASK] is the mask token of an encoder
TEXTS = ("The next day was [MASK] and sunny", "<|endoftext|>déjà <|im_start|>vu 🙂[SEP]")
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
}
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
@pytest.mark.parametrize("name", [FIRST_GPT2, FIRST_BERT, ENCODER])
@pytest.mark.usefixtures("bundled_weights")
def test_a_copy_of_a_model_works_alone(name: str, way: str) -> None:
    model = pretrained.load(name, device="cpu")
    ids = torch.tensor([model.tokenizer.encode(TEXTS[0]).ids])
    with torch.inference_mode():
        before = model.core(ids).hidden
    other = WAYS[way](model)
    assert (other.name, other.source, other.spec, other.config) == (
        model.name, model.source, model.spec, model.config
    )  # fmt: skip
    assert (other.device, other.dtype, other.folder) == (model.device, model.dtype, model.folder)
    with torch.inference_mode():
        assert torch.equal(other.core(ids).hidden, before)
        for parameter in other.core.parameters():
            parameter.zero_()
        assert torch.equal(model.core(ids).hidden, before)


@pytest.mark.usefixtures("bundled_weights")
def test_a_copy_loads_its_own_reference() -> None:
    model = pretrained.load(ENCODER, device="cpu")
    plain = len(pickle.dumps(model))
    reference = model.reference
    assert len(pickle.dumps(model)) == plain  # the reference isn't part of it
    other = pickle.loads(pickle.dumps(model))
    assert type(other.reference) is type(reference)
    assert other.reference is other.reference is not reference
    assert model.reference is reference
