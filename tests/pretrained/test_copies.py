"""Copies of a loaded model work like the original and have their own weights."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import pretrained
from tests.helpers.bundled_models import ENCODER, FIRST_BERT, FIRST_GPT2

# decoders read typed special tokens as text, but for encoders a typed [MASK] is the mask token
TEXTS = ("The next day was [MASK] and sunny", "<|endoftext|>déjà <|im_start|>vu 🙂[SEP]")
COPY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
}
every_kind = pytest.mark.parametrize("kind", COPY_FUNCTIONS)


@every_kind
@pytest.mark.parametrize("name", [FIRST_GPT2, FIRST_BERT, ENCODER])
@pytest.mark.usefixtures("bundled_weights")
def test_copy_is_independent(name: str, kind: str) -> None:
    model = pretrained.load(name, device="cpu")
    ids = torch.tensor([model.tokenizer.encode(TEXTS[0]).ids])
    with torch.inference_mode():
        before = model.core(ids).hidden
    other = COPY_FUNCTIONS[kind](model)
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
def test_copy_loads_its_own_reference() -> None:
    model = pretrained.load(ENCODER, device="cpu")
    plain = len(pickle.dumps(model))
    reference = model.reference
    assert len(pickle.dumps(model)) == plain  # the reference isn't pickled
    other = pickle.loads(pickle.dumps(model))
    assert type(other.reference) is type(reference)
    assert other.reference is other.reference is not reference
    assert model.reference is reference
