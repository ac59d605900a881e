"""Three ways to turn scores into weights: dividing by their sum, and two softmaxes.

Each maps (..., S) to (..., S). They are written out only for comparison; `attend` uses PyTorch's
softmax, which is numerically stable.
"""

from __future__ import annotations

import torch
from torch import Tensor


def weights_by_sum(scores: Tensor) -> Tensor:
    """Scores divided by their sum, which leaves negative scores negative.

    A sum of zero gives infinity or nan. Source: notebook, section 3.3.1.
    """
    return scores / scores.sum(dim=-1, keepdim=True)


def naive_softmax(scores: Tensor) -> Tensor:
    """Softmax exactly as in the formula, exp(x) / sum(exp(x)).

    In float32 exp overflows to infinity above 88.72, and infinity / infinity is nan.
    Source: notebook, section 3.3.1.
    """
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


def stable_softmax(scores: Tensor) -> Tensor:
    """Softmax after subtracting each row's maximum, so no exp is above 1."""
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    powers = torch.exp(shifted)
    return powers / powers.sum(dim=-1, keepdim=True)
