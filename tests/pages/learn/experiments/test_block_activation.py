"""Compare the activation function of a feed-forward network to PyTorch's functions."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.model.config import TransformerConfig
from attention_core.model.layers import FeedForward
from pages.learn.block.experiment import apply_activation

FUNCTIONS = {
    "gelu": torch.nn.GELU(),
    "gelu_tanh": torch.nn.GELU(approximate="tanh"),
    "relu": torch.nn.ReLU(),
    "silu": torch.nn.SiLU(),
}


@pytest.mark.parametrize("has_gate", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_matrix_reads_the_activation_output(name: str, has_gate: bool):
    torch.manual_seed(5)
    config = TransformerConfig(
        vocab_size=7,
        context_length=4,
        d_model=6,
        n_layers=1,
        n_heads=2,
        d_ff=11,
        activation=name,
        gated=has_gate,
    )
    mlp = FeedForward(config)
    torch.nn.init.normal_(mlp.up.matrix)
    x = torch.randn(6)
    if mlp.gate is not None:
        torch.nn.init.normal_(mlp.gate.matrix)
    numbers = apply_activation(name, mlp, x)
    first = mlp.up if mlp.gate is None else mlp.gate
    assert_close(numbers.before, first(x))
    assert_close(numbers.after, FUNCTIONS[name](numbers.before), atol=1e-5, rtol=1e-5)
    assert numbers.before.shape == (11,)
    times = torch.ones(11) if mlp.gate is None else mlp.up(x)
    assert_close(numbers.after * times, mlp.hidden(x), atol=1e-5, rtol=1e-5)
