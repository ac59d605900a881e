"""Hide keys of an existing attention matrix, to see what remains without them.

This changes the matrix only, not the model's output, which used all weights. To switch something
off in the model, use an ablation.
"""

from __future__ import annotations

import torch
from torch import Tensor


def hide_keys(weights: Tensor, hidden: Tensor, *, renormalise: bool) -> Tensor:
    """Set the weights of some keys to 0: (..., T, S) and hidden (S), bool.

    With `renormalise`, each row is divided by its new sum, so that it sums to 1 again. A row in
    which everything is hidden stays 0.
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
    # dividing a zero row by 1 avoids NaN
    return left / total.where(total > 0, 1)


def below_threshold(weights: Tensor, threshold: float) -> Tensor:
    """Whether each weight is below a threshold: (..., T, S) -> same shape, bool.

    Weights equal to the threshold aren't below it, so a threshold of 0 hides nothing.
    Raises: ValueError for a threshold outside 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"the threshold must be between 0 and 1, got {threshold}")
    return weights < threshold
