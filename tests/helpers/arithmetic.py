"""Recompute a number from the terms shown for it."""

import math

import torch
from torch import Tensor


def result(kind: str, operands: Tensor, added: Tensor | None, values: Tensor) -> Tensor:
    """Return the results of all (..., n, 2) operands; `values` is (...).

    The operands of a masked score or a dropped weight don't include the mask. So where `values` is
    minus infinity or 0, the result is as well.
    """
    products = operands.prod(dim=-1)
    if kind == "softmax":
        return products[..., 0].exp() / products[..., 1:].exp().sum(dim=-1)
    total = products.sum(dim=-1)
    if added is not None:
        total = total + added
    if kind in ("masked", "dropout"):
        out = -math.inf if kind == "masked" else 0.0
        total = torch.where(values == out, out, total)
    return total
