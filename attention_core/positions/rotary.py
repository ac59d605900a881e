"""Rotary positions: rotate queries and keys by an angle that grows with position.

Dimension letters: B batch, H heads, T tokens, D head size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.positions.scaling import RopeScaling, plain_frequencies

# Cosine and sine of the angle for every position and column, (T, D) or (B, 1, T, D) each.
Rotation = tuple[Tensor, Tensor]


def rotary_angles(
    positions: Tensor,
    head_size: int,
    theta: float,
    dtype: torch.dtype,
    scaling: RopeScaling | None = None,
) -> Rotation:
    """Cosines and sines of each position's angles, computed in float32.

    A scaling may depend on the number of tokens, which is the last position plus 1.
    Shapes: positions (T,) -> two tensors (T, D); positions per row (B, T) -> two (B, 1, T, D).
    Source: Su et al. 2021, https://arxiv.org/abs/2104.09864.
    """
    frequencies, factor = plain_frequencies(head_size, theta, positions.device), 1.0  # (D/2,)
    if scaling is not None:
        n_tokens = positions.amax(dim=-1, keepdim=True) + 1
        frequencies = scaling.frequencies(frequencies, theta, n_tokens)
        factor = scaling.cosine_factor
    angles = positions.float()[..., None] * frequencies  # [angles] (T, D/2)
    angles = torch.cat((angles, angles), dim=-1)  # [both halves] (T, D)
    angles = angles if positions.dim() == 1 else angles[:, None]  # same angles for all heads
    return (angles.cos() * factor).to(dtype), (angles.sin() * factor).to(dtype)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate each pair (x_i, x_{i + D/2}) by its angle: (B, H, T, D) -> (B, H, T, D)."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin  # [rotated]


def rotate_neighbours(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate each pair (x_{2i}, x_{2i+1}) by its angle: (B, H, T, D) -> (B, H, T, D).

    This is the original order of the pairs, and the one in DeepSeek's weights. The output has each
    pair at i and i + D/2. Queries and keys are reordered the same way, so their dot products don't
    change.
    """
    return rotate(torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1), rotation)
