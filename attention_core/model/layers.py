"""The parts around attention: projections, norms, the feed-forward network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_core.cpu import products
from attention_core.model.config import TransformerConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
    "relu": nn.functional.relu,
    "silu": nn.functional.silu,
}


def random_weights(*shape: int) -> Tensor:
    """Initial weights as GPT-2 draws them: normal with a standard deviation of 0.02."""
    weights = torch.empty(*shape)
    # without values to draw (on the meta device), drawing would cost a second of imports
    return weights if weights.is_meta else weights.normal_(std=0.02)


def project(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight + bias`: (..., d_in) and (d_in, d_out) -> (..., d_out)."""
    if x.device.type == "cpu" and x.dtype == torch.float32:
        return products.linear(x, weight, bias)
    return nn.functional.linear(x, weight.t(), bias)


class Projection(nn.Module):
    """`project` with a weight of its own, stored as (d_in, d_out) like GPT-2's.

    `nn.Linear` stores (d_out, d_in), which is slower to read for one row.
    Shapes: (..., d_in) -> (..., d_out).
    """

    def __init__(self, d_in: int, d_out: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(random_weights(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Project the last dimension."""
        return project(x, self.weight, self.bias)


class RMSNorm(nn.Module):
    """Divide by the root mean square, then scale: (..., C) -> (..., C), inside in float32.

    Source: Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class FeedForward(nn.Module):
    """The position-wise network: the same weights at every position, (..., C) -> (..., C)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.up = Projection(config.d_model, config.d_ff, config.mlp_bias)
        self.gate = (
            Projection(config.d_model, config.d_ff, config.mlp_bias) if config.gated else None
        )
        self.down = Projection(config.d_ff, config.d_model, config.mlp_bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """Widen to d_ff, bend, and come back; with a gate, SwiGLU (arXiv:2002.05202)."""
        return self.down(self.hidden(x))

    def hidden(self, x: Tensor) -> Tensor:
        """What `down` reads, behind the activation: (..., C) -> (..., d_ff)."""
        if self.gate is None:
            return self.activation(self.up(x))
        return self.activation(self.gate(x)) * self.up(x)


def make_norm(config: TransformerConfig) -> nn.Module:
    """The norm that the configuration names."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
