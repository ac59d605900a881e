"""A query and a key that rotary positions turn, at any place and any distance.

Dimension letters: B batch, T tokens, N pairs of places, D head size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attention_core.heads import columns_of_head
from attention_core.model.block import LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.positions.rotary import rotary_angles, rotate
from attention_core.positions.scaling import RopeScaling


def before_turning(
    layer: LayerRecord, config: TransformerConfig, head: int
) -> tuple[Tensor, Tensor]:
    """The queries and keys of a query head, (T, D) each, as they are before any position.

    Raises: ValueError for a head that the model does not have, or a layer with latent attention.
    """
    if not 0 <= head < config.n_heads:
        raise ValueError(f"head must be 0 to {config.n_heads - 1}, got {head}")
    projected = layer.attention.projected  # (B, T, (H + 2 H_kv) * D)
    if projected is None:
        raise ValueError("latent attention has no queries and keys without a position to show")
    query, key, _ = columns_of_head(projected[0], head, config.n_heads, config.kv_heads)
    return query, key


def turned(
    query: Tensor,
    key: Tensor,
    key_places: Tensor,
    distances: Tensor,
    theta: float,
    scaling: RopeScaling | None = None,
) -> tuple[Tensor, Tensor]:
    """A query and a key, each (D,), turned as the model turns them at N pairs of places.

    The key stands at its place (N,), the query at its distance (N,) behind it, and each pair is the
    end of a text of its own. Both results are (N, D).
    """
    places = torch.stack((key_places, key_places + distances), dim=-1)  # (N, 2)
    rotation = rotary_angles(places, len(query), theta, query.dtype, scaling)  # (N, 1, 2, D)
    both = rotate(torch.stack((key, query))[None, None], rotation)  # (N, 1, 2, D)
    return both[:, 0, 1], both[:, 0, 0]


def pair_scores(turned_query: Tensor, turned_key: Tensor) -> Tensor:
    """What each pair of numbers adds to q . k: (N, D) and (N, D) -> (N, D/2)."""
    first, second = (turned_query * turned_key).chunk(2, dim=-1)  # pair i: numbers i and i + D/2
    return first + second


def scores(
    query: Tensor,
    key: Tensor,
    key_places: Tensor,
    distances: Tensor,
    theta: float,
    scaling: RopeScaling | None = None,
) -> Tensor:
    """The score q . k at N pairs of places, arguments as of `turned`: (N,)."""
    turned_query, turned_key = turned(query, key, key_places, distances, theta, scaling)
    return (turned_query * turned_key).sum(dim=-1)
