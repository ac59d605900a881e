"""Explain a number: which cells it's computed from, and the terms of its sum.

An einsum equation describes both. For example, the scores are "hqd,hkd->hqk". A score with indices
h, q and k reads row (h, q) of the queries and row (h, k) of the keys, and it sums over d, which
isn't in the output. As in einops, letters in parentheses share an axis: "tc,(hd)c->htd" reads row
h·D + d of a matrix whose heads are stacked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

# product: the sum of the products, plus an optional bias.
# rotated, "t(pd),rptd->t(rd)": a product with a rotary rotation; p and r are halves of a head.
# scaled, dropout: the input times a factor. masked: the input, or minus infinity.
# softmax, "qk,ql->qk": exp of the first input over the sum of exp over the row of the second.
Kind = Literal["product", "rotated", "scaled", "masked", "softmax", "dropout"]


@dataclass(frozen=True)
class Computation:
    """How every element of a tensor is computed.

    equation: the einsum equation. sources: the names of its inputs. sizes: sizes of letters that
    can't be derived from the inputs' shapes. bias: added at the end, one value per index of the
    last axis.
    factor: multiplies every element.
    """

    kind: Kind
    equation: str
    sources: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    bias: Tensor | None = None
    factor: float = 1.0


@dataclass(frozen=True)
class Operands:
    """The operands of some elements of a tensor, for checking them by hand.

    operands: (..., n, 2), the first n pairs of factors. For a softmax, the exponent of the element,
    then those of its row (each the product of a pair).
    n_terms: the full number of terms. sizes: the size of every letter. added: (...), a bias that is
    added at the end, or None.
    """

    operands: Tensor
    n_terms: int
    sizes: dict[str, int]
    added: Tensor | None = None


def terms(
    computation: Computation,
    sources: Mapping[str, Tensor],
    picked: Sequence[Sequence[int]],
    max_terms: int,
) -> Operands:
    """The first terms, at most `max_terms`, of every element in a window of a tensor.

    sources: the input tensors by name, on any device; the result is on the CPU.
    picked: the indices of the window along each axis of the tensor.
    Raises: ValueError if `max_terms` is below 1.
    """
    if max_terms < 1:
        raise ValueError(f"most must be at least 1, got {max_terms}")
    *inputs, output = (_axes(part) for part in re.split(",|->", computation.equation))
    tensors = [sources[name].detach() for name in computation.sources]
    sizes = _letter_sizes(computation, inputs, tensors)

    def shape(letters: Iterable[str]) -> list[int]:
        return [sizes[letter] for letter in letters]

    known = "".join(output)
    summed = [
        each for each in dict.fromkeys(computation.equation) if each.isalpha() and each not in known
    ]
    n_terms = math.prod(shape(summed))

    # index of every letter, for each term of each element: (*window, n)
    index: dict[str, Tensor] = {}
    along = [*picked, range(min(n_terms, max_terms))]
    grid = torch.meshgrid(*map(torch.tensor, along), indexing="ij")
    for letters, indices in zip([*output, summed], grid, strict=True):
        index |= zip(letters, torch.unravel_index(indices, shape(letters)), strict=True)
    if computation.kind == "rotated":  # the element itself comes first, then its partner
        index["p"] = (index["r"] + index["p"]) % 2

    factors = []
    for axes, tensor in zip(map("".join, inputs), tensors, strict=True):
        cells = tensor.reshape(shape(axes))[tuple(index[letter] for letter in axes)]
        factors.append(cells.cpu())
    if computation.kind == "softmax":
        factors = [torch.cat((factors[0][..., :1], factors[1]), dim=-1)]
    if len(factors) == 1:
        factors.append(torch.full_like(factors[0], computation.factor))
    added = None
    if computation.bias is not None:
        added = computation.bias.detach()[list(picked[-1])].cpu().expand(grid[0].shape[:-1])
    return Operands(torch.stack(factors, dim=-1), n_terms, sizes, added)


def _axes(text: str) -> list[str]:
    """The letters of each axis: "t(hd)" has the axes "t" and "hd"."""
    return [axis.strip("()") for axis in re.findall(r"\w|\(\w+\)", text)]


def _letter_sizes(
    how: Computation, inputs: Sequence[Sequence[str]], tensors: Sequence[Tensor]
) -> dict[str, int]:
    """The size of every letter; at most one letter per shared axis may be unknown."""
    sizes = dict(how.sizes)
    axes = [
        axis
        for input_axes, tensor in zip(inputs, tensors, strict=True)
        for axis in zip(input_axes, tensor.shape, strict=True)
    ]
    for letters, size in sorted(axes, key=lambda axis: len(axis[0])):  # single letters first
        known = math.prod(sizes.get(letter, 1) for letter in letters)
        for letter in letters:
            sizes.setdefault(letter, size // known)
    return sizes
