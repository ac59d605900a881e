"""Projections, norms and the feed-forward network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attention_core.model.config import TransformerConfig


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation of GELU that GPT-2 uses, elementwise."""
    return nn.functional.gelu(x, approximate="tanh")


# Only named functions, because a model with a lambda can't be pickled.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": gelu_tanh,
    "relu": nn.functional.relu,
    "silu": nn.functional.silu,
}


def random_weights(*shape: int) -> Tensor:
    """Initial weights as in GPT-2: normal with a standard deviation of 0.02."""
    weights = torch.empty(*shape)
    # skip the meta device, where drawing only costs a second of imports
    return weights if weights.is_meta else weights.normal_(std=0.02)


class Projection(nn.Linear):
    """`nn.Linear` with GPT-2's initialization: (..., d_in) -> (..., d_out)."""

    def __init__(self, d_in: int, d_out: int, bias: bool = True) -> None:
        super().__init__(d_in, d_out, bias=bias)

    def reset_parameters(self) -> None:
        """Draw new weights and set the bias to 0."""
        self.weight = nn.Parameter(random_weights(self.out_features, self.in_features))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def matrix(self) -> Tensor:
        """The weight as in `x @ matrix`, (d_in, d_out): a view of `weight`."""
        return self.weight.t()


class RMSNorm(nn.Module):
    """Divide by the root mean square, then scale: (..., C) -> (..., C).

    Computed in float32 and converted back.
    Source: Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class FeedForward(nn.Module):
    """The feed-forward network, applied to each position: (..., C) -> (..., C)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.up = Projection(config.d_model, config.d_ff, config.mlp_bias)
        self.gate = (
            Projection(config.d_model, config.d_ff, config.mlp_bias) if config.gated else None
        )
        self.down = Projection(config.d_ff, config.d_model, config.mlp_bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(
        self,
        x: Tensor,
        *,
        edit: Callable[[Tensor], Tensor] | None = None,
        activations: list[Tensor] | None = None,
    ) -> Tensor:
        """Project up to d_ff, apply the activation, project back: (..., C) -> (..., C).

        With a gate it's SwiGLU (Shazeer 2020, https://arxiv.org/abs/2002.05202).

        edit: changes the hidden activations (..., d_ff).
        activations: a list to which they're appended.
        """
        hidden = self.hidden(x)  # [hidden] (..., C) -> (..., d_ff)
        if edit is not None:
            hidden = edit(hidden)
        if activations is not None:
            activations.append(hidden)
        return self.down(hidden)  # [down] (..., d_ff) -> (..., C)

    def hidden(self, x: Tensor) -> Tensor:
        """The input of `down`, after the activation: (..., C) -> (..., d_ff)."""
        if self.gate is None:
            return self.activation(self.up(x))
        return self.activation(self.gate(x)) * self.up(x)


def make_norm(config: TransformerConfig) -> nn.Module:
    """The norm that the configuration selects."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)
