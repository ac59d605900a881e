"""The parts around attention: projections, norms, rotary positions, the feed-forward network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_core.config import TransformerConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
    "silu": nn.functional.silu,
}


class Projection(nn.Module):
    """`x @ weight + bias` with the weight stored as (d_in, d_out).

    Not `nn.Linear`, which stores (d_out, d_in): for the single row of a decode step on a CPU the
    product with the transposed layout reads memory at about half the rate (`benchmarks/layout.py`
    measures it).

    Shapes: (..., d_in) -> (..., d_out).
    """

    def __init__(self, d_in: int, d_out: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Project the last dimension."""
        return nn.functional.linear(x, self.weight.t(), self.bias)


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
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


def make_norm(config: TransformerConfig) -> nn.Module:
    """The norm that the configuration names."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


def rotary_angles(
    positions: Tensor, head_size: int, theta: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position's rotation, computed in float32.

    Shapes: positions (T,) -> two tensors (T, D).
    Source: Su et al. 2021, https://arxiv.org/abs/2104.09864.
    """
    even = torch.arange(0, head_size, 2, device=positions.device, dtype=torch.float32)
    frequencies = 1.0 / theta ** (even / head_size)  # (D/2,)
    angles = positions.float()[:, None] * frequencies  # (T, D/2)
    angles = torch.cat((angles, angles), dim=-1)  # (T, D)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (x_i, x_{i + D/2}) by its position's angle: (B, H, T, D) -> (B, H, T, D)."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
