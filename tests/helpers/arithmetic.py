"""What the terms of a number make, to be compared with the number."""

import math

import torch
from torch import Tensor


def result(kind: str, operands: Tensor, added: Tensor | None, values: Tensor) -> Tensor:
    """The number that each (..., n, 2) operands make, all of them given; `values` is (...).

    Of a masked number and of a dropped weight the operands say only what is there if it is let
    through: where `values` is minus infinity, or 0, so is this.
    """
    products = operands.prod(dim=-1)
    if kind == "softmax":
        return products[..., 0].exp() / products[..., 1:].exp().sum(dim=-1)
    made = products.sum(dim=-1)
    if added is not None:
        made = made + added
    if kind in ("masked", "dropout"):
        out = -math.inf if kind == "masked" else 0.0
        made = torch.where(values == out, out, made)
    return made
