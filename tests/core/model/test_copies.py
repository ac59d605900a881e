"""Pickled, saved, and copied models give the same results with their own weights."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest
import torch
from torch import Tensor, nn

from attention_core import Transformer, TransformerConfig
from attention_core.speed.int8 import Int8Transformer
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY

ACTIVATIONS = get_args(get_type_hints(TransformerConfig)["activation"])
CONFIGS = {
    **TINY,
    **LATENT,
    "window": replace(TINY["llama"], window=3),
    **{f"gated {name}": replace(TINY["llama"], activation=name) for name in ACTIVATIONS},
}
INT8 = [f"{name} in 8 bits" for name in CONFIGS if name not in LATENT]


COPY_FUNCTIONS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
}


def final_output(model: nn.Module, ids: Tensor) -> Tensor:
    output = model(ids)
    hidden: Tensor = output.hidden if output.logits is None else output.logits
    return hidden


@pytest.mark.parametrize("kind", COPY_FUNCTIONS)
@pytest.mark.parametrize("name", [*CONFIGS, *INT8])
def test_copy_gives_the_same_results_with_its_own_weights(name: str, kind: str):
    model: Transformer = enlarged_model(CONFIGS[name.removesuffix(" in 8 bits")])
    if name in INT8:
        model = Int8Transformer(model)
    ids = torch.randint(model.config.vocab_size, (2, 7), generator=torch.Generator().manual_seed(5))
    before = final_output(model, ids)
    other = COPY_FUNCTIONS[kind](model)
    assert type(other) is type(model)
    assert not other.training
    assert torch.equal(final_output(other, ids), before)
    for tensor in (*other.parameters(), *other.buffers()):
        assert not tensor.requires_grad
        tensor.zero_()
    assert torch.equal(final_output(model, ids), before)
