"""The softmax over a dimension other than the keys.

Dimension letters: H heads, T queries, S keys. Attention uses `dim=-1`: scores (H, T, S) have the
keys last, so each query's weights over the keys sum to 1.
Source: the notebook, section 3.3.2, which explains `dim=-1`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

KEYS, QUERIES, HEADS = -1, -2, -3
DIMS = (KEYS, QUERIES, HEADS)


def softmax_over(scores: Tensor, dim: int, mask: Tensor | None = None) -> Tensor:
    """Turn scores (H, T, S) into weights that sum to 1 along `dim`; masked weights are 0.

    Raises: ValueError for a dim that isn't -1, -2 or -3, or scores without three dimensions.
    """
    if dim not in DIMS or scores.dim() != 3:
        raise ValueError(f"dim must be one of {DIMS} of (H, T, S), got {dim} of {(*scores.shape,)}")
    if mask is None:
        return torch.softmax(scores, dim=dim)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=dim)  # [weights]
    return weights.masked_fill(~mask, 0.0)  # a fully masked line is 0/0 before


def sums(weights: Tensor) -> dict[int, Tensor]:
    """Sum weights (H, T, S) over each dimension: keys (H, T), queries (H, S), heads (T, S)."""
    return {dim: weights.sum(dim=dim) for dim in DIMS}


def change_without_the_last(scores: Tensor, dim: int, mask: Tensor | None = None) -> float:
    """The largest change of a weight in the earlier rows when the last token is removed.

    The scores (H, T, T) of the other tokens don't depend on it. With a causal mask no earlier row
    may change; a change means that the row depends on a later token.
    Raises: ValueError for fewer than 2 tokens.
    """
    n_tokens = scores.shape[-1]
    if n_tokens < 2:
        raise ValueError(f"at least 2 tokens are needed, got {n_tokens}")
    shorter = None if mask is None else mask[:-1, :-1]
    alone = softmax_over(scores[:, :-1, :-1], dim, shorter)
    return float((softmax_over(scores, dim, mask)[:, :-1, :-1] - alone).abs().max())
