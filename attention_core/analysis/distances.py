"""Distances between predictions or vectors, for comparing two runs.

Dimension letters: T tokens, C width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor


def ratio(part: Tensor, whole: Tensor, *, of_zeros: float = 0.0) -> Tensor:
    """`part / whole`, or `of_zeros` if both are 0, as with weights that are all zero."""
    both_zero = (part == 0) & (whole == 0)
    return torch.where(both_zero, torch.full_like(part, of_zeros), part / whole)


def divergence(before: Tensor, after: Tensor) -> Tensor:
    """Kullback-Leibler divergence in nats: logits (V,) and (..., V) -> (...).

    sum_v p_v (log p_v - log q_v) with p before and q after; 0 if nothing changed. Computed in
    float64, because float32 would lose small differences.
    """
    log_p, log_q = before.double().log_softmax(dim=-1), after.double().log_softmax(dim=-1)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1).clamp(min=0.0)


def cosine_distance(before: Tensor, after: Tensor) -> Tensor:
    """1 - cosine of each token's two vectors: (T, C) and (..., T, C) -> (..., T).

    Ranges from 0 (same direction) to 2 (opposite). A zero vector has no direction: the distance is
    0 if both are zero, otherwise 1.
    """
    cosine = torch.cosine_similarity(before.double(), after.double(), dim=-1)
    unchanged = (before == after).all(dim=-1)
    return (1.0 - cosine).clamp(min=0.0).masked_fill(unchanged, 0.0)


def relative_distance(before: Tensor, after: Tensor) -> Tensor:
    """||after - before|| / ||before|| of each token: (T, C), (..., T, C) -> (..., T)."""
    norm = torch.linalg.vector_norm(before.double(), dim=-1)
    return ratio(torch.linalg.vector_norm(after.double() - before.double(), dim=-1), norm)
