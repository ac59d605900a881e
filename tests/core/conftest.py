"""Tiny transformers whose sizes are all distinct, so that a swapped dimension cannot hide."""

import pytest

from attention_core import Transformer
from tests.helpers.tiny_models import build


@pytest.fixture(params=["gpt2", "llama", "llama-tied"])
def decoder(request: pytest.FixtureRequest) -> Transformer:
    return build(request.param)
