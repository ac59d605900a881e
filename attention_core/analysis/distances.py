"""How far a prediction, or a token's vector, is from another: what experiments report.

Dimension letters: T tokens, C width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor


def ratio(part: Tensor, whole: Tensor, *, of_zeros: float = 0.0) -> Tensor:
    """`part / whole`, and `of_zeros` where both are 0: weights that are all zero give such."""
    both_zero = (part == 0) & (whole == 0)
    return torch.where(both_zero, torch.full_like(part, of_zeros), part / whole)


def divergence(before: Tensor, after: Tensor) -> Tensor:
    """Kullback-Leibler divergence in nats of predictions: logits (V,) and (..., V) -> (...).

    sum_v p_v (log p_v - log q_v) with p before and q after: 0 where nothing changed. In float64,
    since the differences of small effects are lost in float32.
    """
    log_p, log_q = before.double().log_softmax(dim=-1), after.double().log_softmax(dim=-1)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1).clamp(min=0.0)


def cosine_distance(before: Tensor, after: Tensor) -> Tensor:
    """1 - cosine of each token's vector with its changed one: (T, C), (..., T, C) -> (..., T).

    From 0 (same direction) to 2 (opposite). A vector of zeros has no direction: 0 if it stays one,
    otherwise 1.
    """
    cosine = torch.cosine_similarity(before.double(), after.double(), dim=-1)
    unchanged = (before == after).all(dim=-1)
    return (1.0 - cosine).clamp(min=0.0).masked_fill(unchanged, 0.0)


def relative_distance(before: Tensor, after: Tensor) -> Tensor:
    """||after - before|| / ||before|| of each token: (T, C), (..., T, C) -> (..., T)."""
    norm = torch.linalg.vector_norm(before.double(), dim=-1)
    return ratio(torch.linalg.vector_norm(after.double() - before.double(), dim=-1), norm)
