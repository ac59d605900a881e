"""What a number was computed from: the cells it read, and the arithmetic.

A `Computation` says for every number of a tensor which numbers of other tensors it is made of;
`terms` gives the operands. The functions below it are the computations that attention consists of.
Dimension letters: T tokens, S keys, H heads, H_kv key/value heads, D head size, C model width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from attention_core.positions.rotary import Rotation

# product: a sum of products, and a bias if there is one. rotated: the same with two terms, x times
# a cosine and its partner times a sine. scaled, dropout: one number times a factor. masked: one
# number, or minus infinity. softmax: e to the power of one number, over the sum of such powers.
Kind = Literal["product", "rotated", "scaled", "masked", "softmax", "dropout"]


@dataclass(frozen=True)
class Follows:
    """The index along an axis of what is read, from the index of the result.

    axis: the axis of the result whose index it is, divided by `group` (query heads that share a
    key/value head). With `half`, the index that lies half a head away is read too: the partner of a
    rotary rotation. With `head` (an axis of the result, columns of a head), the columns of the
    heads before that of the result are skipped.
    """

    axis: int
    group: int = 1
    half: int = 0
    head: tuple[int, int] | None = None

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """All of it as numbers: 0 and 0 where there is no axis of heads."""
        return (self.axis, self.group, self.half, *(self.head or (0, 0)))

    def indices(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """What is read for the result at `index`: numbers, or tensors of them for many results."""
        own = index[self.axis] // self.group
        if self.head is not None:
            own = own + index[self.head[0]] * self.head[1]
        if not self.half:
            return (own,)
        return own, (own + self.half) % (2 * self.half)


@dataclass(frozen=True)
class Reads:
    """Which numbers of one tensor a number was computed from.

    source: what the tensor is called. axes: for each of its axes what the index follows; None where
    all indices are read.
    """

    source: str
    axes: tuple[Follows | None, ...]

    def cells(self, index: Sequence[int], shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The indices read along each axis of a tensor of this shape, for the result at `index`."""
        return tuple(
            tuple(range(size)) if follows is None else follows.indices(index)
            for follows, size in zip(self.axes, shape, strict=True)
        )


@dataclass(frozen=True)
class Computation:
    """How every number of one tensor was computed.

    bias: what was added to a sum of products, a number for each index of the last axis. factor:
    what every number was multiplied by. rotation: the cosines and sines (T, D) of a rotary turn.
    """

    kind: Kind
    reads: tuple[Reads, ...]
    bias: Tensor | None = None
    factor: float = 1.0
    rotation: Rotation | None = None


@dataclass(frozen=True)
class Terms:
    """The operands of some numbers of a tensor, for checking them by hand.

    operands: (..., n, 2), the first n pairs that are multiplied; for a softmax the exponent of the
    number itself, then those of its row (each the product of a pair). n_terms: how many there are
    in all.
    added: (...), what is added at the end (a bias), or None.
    """

    operands: Tensor
    n_terms: int
    added: Tensor | None = None


# ---- the computations of attention; the last two axes are tokens and columns, or queries and keys


def projected(x: str, matrix: str, n_lead: int, bias: Tensor | None = None) -> Computation:
    """Tokens times a matrix (C, D): a row of x and a column of it. n_lead: the axes before T."""
    of_matrix = Reads(matrix, (None, Follows(n_lead + 1)))
    return Computation("product", (Reads(x, (*same(n_lead + 1), None)), of_matrix), bias)


def scored(queries: str, keys: str, n_lead: int, group: int = 1) -> Computation:
    """Queries times keys: a row of each. n_lead: axes before the last two, the last one heads."""
    of_keys = Reads(keys, (*_shared(n_lead, group), Follows(n_lead + 1), None))
    return Computation("product", (Reads(queries, (*same(n_lead + 1), None)), of_keys))


def weighed(scores: str, n_lead: int, factor: float = 1.0) -> Computation:
    """The softmax over a row of scores, masked already; factor: the scale, if it is still to do."""
    return Computation("softmax", (Reads(scores, (*same(n_lead + 1), None)),), factor=factor)


def mixed(weights: str, values: str, n_lead: int, group: int = 1) -> Computation:
    """Weights times values: a row of weights and a column of values."""
    of_values = Reads(values, (*_shared(n_lead, group), None, Follows(n_lead + 1)))
    return Computation("product", (Reads(weights, (*same(n_lead + 1), None)), of_values))


def changed(kind: Kind, source: str, n_axes: int, factor: float = 1.0) -> Computation:
    """One number made from the number at the same place: scaled, masked, or dropped."""
    return Computation(kind, (Reads(source, same(n_axes)),), factor=factor)


def same(n_axes: int) -> tuple[Follows, ...]:
    """The index of the result along the first axes."""
    return tuple(map(Follows, range(n_axes)))


def _shared(n_lead: int, group: int) -> tuple[Follows, ...]:
    """The axes before the last two of keys and values, whose heads serve `group` query heads."""
    return (*same(n_lead - 1), Follows(n_lead - 1, group)) if n_lead else ()


# ---- the operands


def terms(
    how: Computation, sources: Mapping[str, Tensor], picked: Sequence[Sequence[int]], most: int
) -> Terms:
    """At most `most` terms of each number in a window of a tensor.

    sources: the tensors that it reads by their names; they may lie anywhere, the terms are on the
    CPU. picked: the indices of the window along each axis of the tensor.
    Raises: ValueError for a number of terms below 1.
    """
    if most < 1:
        raise ValueError(f"at least one term is needed, got {most}")
    tensors = [sources[reads.source] for reads in how.reads]
    first = _operand(how.reads[0], tensors[0], picked, most)
    if how.kind == "product":
        second = _operand(how.reads[1], tensors[1], picked, most)
        added = None
        if how.bias is not None:
            added = how.bias.detach()[list(picked[-1])].cpu().expand(first.shape[:-1])
        return Terms(_paired(first, second), _n_summed(how.reads[0], tensors[0]), added)
    if how.kind == "rotated":
        assert how.rotation is not None
        return Terms(_paired(first, _turns(how.rotation, picked)), 2)
    if how.kind == "softmax":
        own = _operand(replace(how.reads[0], axes=same(len(picked))), tensors[0], picked, 1)
        row = torch.cat((own, first), dim=-1)
        n_terms = _n_summed(how.reads[0], tensors[0])
        return Terms(_paired(row, torch.full_like(row, how.factor)), n_terms)
    return Terms(_paired(first, torch.full_like(first, how.factor)), 1)


def _paired(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack((first, second), dim=-1)


def _n_summed(reads: Reads, source: Tensor) -> int:
    """How many numbers are summed over: the sizes of the axes that are read whole."""
    sizes = zip(reads.axes, source.shape, strict=True)
    return math.prod(size for follows, size in sizes if follows is None)


def _operand(reads: Reads, source: Tensor, picked: Sequence[Sequence[int]], most: int) -> Tensor:
    """What a window reads of one tensor, at most `most` terms of each number: (*window, n)."""
    dims = len(picked)
    window = tuple(map(len, picked))
    n_terms = min(_n_summed(reads, source), most)
    if any(follows is not None and follows.half for follows in reads.axes):
        n_terms = 2
    axes = zip(reads.axes, source.shape, strict=True)
    summed = [size for follows, size in axes if follows is None]
    along = iter(torch.unravel_index(torch.arange(n_terms), summed) if summed else ())
    # the indices of the window, each along its own axis, and one more axis for the terms
    grid = [
        torch.tensor(list(indices)).view([-1 if axis == at else 1 for at in range(dims + 1)])
        for axis, indices in enumerate(picked)
    ]
    index = []
    for follows in reads.axes:
        if follows is None:
            index.append(next(along).view(*[1] * dims, -1))
            continue
        index.append(torch.cat(follows.indices(grid), dim=-1))
    return source.detach()[tuple(index)].cpu().expand(*window, n_terms)


def _turns(rotation: Rotation, picked: Sequence[Sequence[int]]) -> Tensor:
    """The cosine, and the sine with its sign, of each number of a window: (*window, 2)."""
    cos, sin = (part.cpu() for part in rotation)
    columns = torch.tensor(list(picked[-1]))
    sign = torch.where(columns < cos.shape[-1] // 2, -1.0, 1.0)
    tokens = torch.tensor(list(picked[-2]))[:, None]
    both = _paired(cos[tokens, columns], sin[tokens, columns] * sign)
    return both.expand(*map(len, picked), 2)
