"""Three ways to turn scores into weights: over their sum, by the bare formula, and safely.

Each maps (..., S) to (..., S). They are written out here to be compared; `attend` calls torch's own
softmax, which is the safe one.
"""

from __future__ import annotations

import torch
from torch import Tensor


def weights_by_sum(scores: Tensor) -> Tensor:
    """Scores divided by their sum: adds up to 1, but a negative score stays negative.

    A sum of zero gives infinities or nan. Source: notebook, section 3.3.1.
    """
    return scores / scores.sum(dim=-1, keepdim=True)


def naive_softmax(scores: Tensor) -> Tensor:
    """exp(x) / sum(exp(x)), as the formula is written.

    In float32 exp overflows to infinity above 88.72, and infinity / infinity is nan.
    Source: notebook, section 3.3.1.
    """
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def stable_softmax(scores: Tensor) -> Tensor:
    """The same weights after subtracting each row's maximum: no power is above exp(0) = 1."""
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    powers = torch.exp(shifted)
    return powers / powers.sum(dim=-1, keepdim=True)
