"""The softmax over another dimension than the keys.

Dimension letters: H heads, T queries, S keys. In attention `dim=-1` is right: scores (H, T, S) have
the keys last, so that each query divides a whole among the keys.
Source: the notebook, section 3.3.2, which says what `dim=-1` does.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

KEYS, QUERIES, HEADS = -1, -2, -3
DIMS = (KEYS, QUERIES, HEADS)


def softmax_over(scores: Tensor, dim: int, mask: Tensor | None = None) -> Tensor:
    """Scores (H, T, S) to weights (H, T, S) that sum to 1 along `dim`; forbidden ones are 0.

    Raises: ValueError for a dim that is not -1, -2 or -3, or scores without three dimensions.
    """
    if dim not in DIMS or scores.dim() != 3:
        raise ValueError(f"dim must be one of {DIMS} of (H, T, S), got {dim} of {(*scores.shape,)}")
    if mask is None:
        return torch.softmax(scores, dim=dim)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=dim)  # [weights]
    return weights.masked_fill(~mask, 0.0)  # where all heads are forbidden, 0/0 before


def sums(weights: Tensor) -> dict[int, Tensor]:
    """Weights (H, T, S) added up along each dimension: over keys (H, T), queries (H, S), heads."""
    return {dim: weights.sum(dim=dim) for dim in DIMS}


def change_without_the_last(scores: Tensor, dim: int, mask: Tensor | None = None) -> float:
    """How far the earlier rows change at most when the last token is taken away.

    The scores (H, T, T) of the other tokens are the same without it. Where the mask is causal
    nothing before it may change: a change means that a row knows what comes later.
    Raises: ValueError for fewer than 2 tokens.
    """
    n_tokens = scores.shape[-1]
    if n_tokens < 2:
        raise ValueError(f"there is no token before the last one of {n_tokens}")
    shorter = None if mask is None else mask[:-1, :-1]
    alone = softmax_over(scores[:, :-1, :-1], dim, shorter)
    return float((softmax_over(scores, dim, mask)[:, :-1, :-1] - alone).abs().max())
