"""The non-linearity inside a feed-forward network, applied to one token.

Dimension letters: C width, F width inside the feed-forward network.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.model.layers import ACTIVATIONS, FeedForward


@dataclass(frozen=True)
class ActivationValues:
    """A function, and the numbers of a token before and after it."""

    name: str  # as in `TransformerConfig.activation`
    before: Tensor  # (F,)
    after: Tensor  # (F,)


def apply_activation(name: str, mlp: FeedForward, x: Tensor) -> ActivationValues:
    """Apply the first matrix and the non-linearity of a network to a token x (C,).

    With a gate (SwiGLU, arXiv:2002.05202) the non-linearity is applied to the gate, which then
    multiplies `up`. name: the network's `TransformerConfig.activation`.
    """
    before = (mlp.up if mlp.gate is None else mlp.gate)(x)
    return ActivationValues(name, before, mlp.activation(before))


def curve(name: str, low: float, high: float, n_points: int = 121) -> tuple[Tensor, Tensor]:
    """Evenly spaced numbers and the function's value at each, (n_points,)."""
    x = torch.linspace(low, high, n_points)
    return x, ACTIVATIONS[name](x)
