"""A query and a key under rotary positions, at any position and distance.

Dimension letters: B batch, T tokens, N pairs of positions, D head size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.heads import columns_of_head
from attention_core.model.block import LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.positions.rotary import rotary_angles, rotate
from attention_core.positions.scaling import RopeScaling


def unrotated_vectors(
    layer: LayerRecord, config: TransformerConfig, head: int
) -> tuple[Tensor, Tensor]:
    """Queries and keys of a query head before rotation, (T, D) each.

    Raises: ValueError for a head that the model doesn't have, or a layer with latent attention.
    """
    if not 0 <= head < config.n_heads:
        raise ValueError(f"head must be 0 to {config.n_heads - 1}, got {head}")
    projected = layer.attention.projected  # (B, T, (H + 2 H_kv) * D)
    if projected is None:
        raise ValueError("latent attention has no queries and keys without positions")
    query, key, _ = columns_of_head(projected[0], head, config.n_heads, config.kv_heads)
    return query, key


def rotate_pair(
    query: Tensor,
    key: Tensor,
    key_positions: Tensor,
    distances: Tensor,
    theta: float,
    scaling: RopeScaling | None = None,
) -> tuple[Tensor, Tensor]:
    """Rotate a query and a key (D,) to N pairs of positions.

    key_positions: (N,), positions of the key. distances: (N,), how many tokens later the query
    comes. Each pair counts as the end of a separate text. Both results are (N, D).
    """
    places = torch.stack((key_positions, key_positions + distances), dim=-1)  # (N, 2)
    rotation = rotary_angles(places, len(query), theta, query.dtype, scaling)  # (N, 1, 2, D)
    both = rotate(torch.stack((key, query))[None, None], rotation)  # (N, 1, 2, D)
    return both[:, 0, 1], both[:, 0, 0]


def pair_scores(turned_query: Tensor, turned_key: Tensor) -> Tensor:
    """Contribution of each pair to q . k: (N, D) and (N, D) -> (N, D/2)."""
    first, second = (turned_query * turned_key).chunk(2, dim=-1)  # pair i: numbers i and i + D/2
    return first + second


def scores(
    query: Tensor,
    key: Tensor,
    key_positions: Tensor,
    distances: Tensor,
    theta: float,
    scaling: RopeScaling | None = None,
) -> Tensor:
    """Scores q . k at N pairs of positions, (N,). Arguments: as in `rotate_pair`."""
    turned_query, turned_key = rotate_pair(query, key, key_positions, distances, theta, scaling)
    return (turned_query * turned_key).sum(dim=-1)
