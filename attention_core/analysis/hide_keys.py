"""Hide keys of a finished attention matrix, to see what is left without them.

Only the picture changes, not the model: it computed its output with all its weights. To switch
something off in the model itself is an ablation, which is another question.
"""

from __future__ import annotations

import torch
from torch import Tensor


def hide_keys(weights: Tensor, hidden: Tensor, *, renormalise: bool) -> Tensor:
    """The weights with some keys' columns set to 0: (..., T, S) and hidden (S) of bool.

    With `renormalise`, what is left of a row is divided by its sum, so that the row sums to 1
    again: the shares among the keys still shown. A row whose whole weight was hidden stays 0.
    Raises: ValueError unless `hidden` has one flag per key.
    """
    if hidden.shape != weights.shape[-1:] or hidden.dtype != torch.bool:
        raise ValueError(
            f"hidden must be bool with one flag for each of the {weights.shape[-1]} keys, got "
            f"{hidden.dtype} of shape {tuple(hidden.shape)}"
        )
    left = weights.masked_fill(hidden, 0)
    if not renormalise:
        return left
    total = left.sum(-1, keepdim=True)
    # dividing a row of zeros by 1 keeps it zeros, without a NaN on the way
    return left / total.where(total > 0, 1)


def below(weights: Tensor, threshold: float) -> Tensor:
    """Which weights are smaller than a threshold: (..., T, S) -> the same shape, bool.

    A weight equal to the threshold is not below it; at 0 none is.
    Raises: ValueError for a threshold outside 0 .. 1.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"a threshold for weights lies between 0 and 1, got {threshold}")
    return weights < threshold
