"""Ways to mask the future: after the softmax, before it, or with a finite number.

Dimension letters: T queries, S keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from attention_core.attend import attention_weights, mask_scores


def zero_masked(weights: Tensor, mask: Tensor) -> Tensor:
    """Set forbidden weights to zero after the softmax, so rows sum to less than 1."""
    return weights * mask


def renormalise(weights: Tensor) -> Tensor:
    """Divide every row (..., T, S) by its sum; a row of zeros becomes nan.

    After `zero_masked` this equals a softmax over the allowed keys, because the common denominator
    cancels.
    Source: notebook and course on causal attention.
    """
    return weights / weights.sum(dim=-1, keepdim=True)  # [normalized]


def leaked_weight(weights: Tensor, mask: Tensor) -> Tensor:
    """The weight that each query gives to forbidden keys: (..., T, S) -> (..., T)."""
    return weights.masked_fill(mask, 0.0).sum(dim=-1)


@dataclass(frozen=True)
class MaskResults:
    """One head's scores masked in several ways; every tensor is (..., T, S).

    unmasked: softmax over all keys. zeroed: the same with the future set to zero. renormalised:
    `zeroed` with rows divided by their sums. before: minus infinity before the softmax.
    filled_scores, filled: scores with the finite fill, and their weights. leaked: (..., T), the
    weight on the future in `filled`. difference: the largest between `renormalised` and `before`.
    """

    unmasked: Tensor
    zeroed: Tensor
    renormalised: Tensor
    masked_scores: Tensor
    before: Tensor
    filled_scores: Tensor
    filled: Tensor
    leaked: Tensor
    difference: float


def compare_masks(
    scores: Tensor, mask: Tensor, *, scale: float = 1.0, fill: float = 0.0
) -> MaskResults:
    """Mask scores (..., T, S) in every way; `mask` is True where attention is allowed.

    As in `attend`, scores are masked first and then scaled. `fill` reproduces the article's
    mistake: 0.0 is a score like any other, so the softmax gives it exp(0) / sum.
    Raises: ValueError for a fill that is nan or plus infinity, a scale that isn't positive, or a
    query without any visible key.
    """
    if math.isnan(fill) or fill == math.inf:
        raise ValueError(f"fill must be a number or minus infinity, got {fill}")
    if not scale > 0.0:
        raise ValueError(f"scale must be positive, got {scale}")
    if not bool(mask.any(dim=-1).all()):
        raise ValueError("every query needs a key that it may see")
    unmasked = attention_weights(scores * scale)
    zeroed = zero_masked(unmasked, mask)
    renormalised = renormalise(zeroed)
    masked_scores = mask_scores(scores, mask)
    before = attention_weights(masked_scores * scale, mask)
    filled_scores = mask_scores(scores, mask, fill)
    filled = attention_weights(filled_scores * scale, mask)
    return MaskResults(
        unmasked=unmasked,
        zeroed=zeroed,
        renormalised=renormalised,
        masked_scores=masked_scores,
        before=before,
        filled_scores=filled_scores,
        filled=filled,
        leaked=leaked_weight(filled, mask),
        difference=float((renormalised - before).abs().max()),
    )
