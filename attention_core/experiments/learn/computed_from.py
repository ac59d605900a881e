"""What each number of the eleven steps was computed from: the cells it read, and the arithmetic.

Steps 5, 6, 10 and the first half of 11 only move numbers, and a cell's place follows them
(`Named.cells`). Every other number is new: this module says which numbers of which earlier tensors
it is made of.
Dimension letters: B batch, T tokens, H heads, H_kv key/value heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from attention_core.experiments.learn.shapes import Named, ShapeStep

# product: a sum of products, and a bias if there is one. rotated: the same with two terms, x times
# a cosine and its partner times a sine. scaled, dropout: one number times a factor. masked: one
# number, or minus infinity. softmax: e to the power of one number, over the sum of such powers.
Kind = Literal["product", "rotated", "scaled", "masked", "softmax", "dropout"]


@dataclass(frozen=True)
class Follows:
    """The index along an axis of what is read, from the index of the result.

    axis: the axis of the result whose index it is, divided by `group` (query heads that share a
    key/value head). With `half`, the index that lies half a head away is read too: the partner of a
    rotary rotation.
    """

    axis: int
    group: int = 1
    half: int = 0

    def indices(self, i: int) -> tuple[int, ...]:
        """What is read for a result whose index along `axis` is i."""
        own = i // self.group
        if not self.half:
            return (own,)
        return own, (own + self.half) % (2 * self.half)


@dataclass(frozen=True)
class Reads:
    """Which numbers of one earlier tensor a number was computed from.

    step, name: the tensor. axes: for each of its axes what the index follows; None where all
    indices are read.
    """

    step: int
    name: str
    axes: tuple[Follows | None, ...]

    def cells(self, index: Sequence[int], shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The indices read along each axis of a tensor of this shape, for the result at `index`."""
        return tuple(
            tuple(range(size)) if follows is None else follows.indices(index[follows.axis])
            for follows, size in zip(self.axes, shape, strict=True)
        )


@dataclass(frozen=True)
class Computation:
    """How every number of one tensor was computed."""

    kind: Kind
    reads: tuple[Reads, ...]


@dataclass(frozen=True)
class Terms:
    """The operands of some numbers of a tensor, for checking them by hand.

    operands: (..., n, 2), the first n pairs that are multiplied; for a softmax the exponent of the
    number itself, then those of its row (second column: ones). n_terms: how many there are in all.
    added: (...), what is added at the end (a bias), or None.
    """

    operands: Tensor
    n_terms: int
    added: Tensor | None = None


_SAME = tuple(map(Follows, range(4)))
_ROW = (*_SAME[:3], None)


def computation(steps: Sequence[ShapeStep], number: int, name: str) -> Computation | None:
    """How a tensor of a step was computed; None where it was given or only moved.

    Raises: KeyError if the step has no tensor of this name.
    """
    result = steps[number - 1][name]
    if number == 4:
        matrix = steps[2].tensors[[tensor.name for tensor in steps[3].tensors].index(name)]
        reads = Reads(1, "input", (*_SAME[:2], None)), Reads(3, matrix.name, (None, Follows(2)))
        return Computation("product", reads)
    if result.rotation is not None:
        half = result.shape[-1] // 2
        pair = (*_SAME[:3], Follows(3, half=half))
        return Computation("rotated", (Reads(6, name.split(",")[0], pair),))
    if number == 7:
        group = result.shape[1] // steps[5]["keys"].shape[1]
        (at, query), (_, key) = steps[6].made_from
        keys = Follows(0), Follows(1, group), Follows(3), None
        return Computation("product", (Reads(at, query, _ROW), Reads(at, key, keys)))
    if number == 8:
        return _weighing(steps, name)
    if number == 9:
        group = result.shape[1] // steps[5]["values"].shape[1]
        values = Follows(0), Follows(1, group), None, Follows(3)
        weights = Reads(8, steps[7].tensors[-1].name, _ROW)
        return Computation("product", (weights, Reads(6, "values", values)))
    if name == "output":
        merged = Reads(11, "merged", (*_SAME[:2], None))
        return Computation("product", (merged, Reads(3, "W_out", (None, Follows(2)))))
    return None


def _weighing(steps: Sequence[ShapeStep], name: str) -> Computation:
    """Step 8: every tensor comes from the one before it, the first from the scores."""
    names = [tensor.name for tensor in steps[7].tensors]
    at = names.index(name)
    step, before = (8, names[at - 1]) if at else (7, "scores")
    kinds: dict[str, Kind] = {"masked": "masked", "scaled": "scaled", "weights": "softmax"}
    kind = kinds.get(name, "dropout")
    return Computation(kind, (Reads(step, before, _ROW if kind == "softmax" else _SAME),))


def terms(
    steps: Sequence[ShapeStep],
    number: int,
    name: str,
    picked: Sequence[Sequence[int]],
    most: int,
) -> Terms | None:
    """At most `most` terms of each number in a window of a tensor; None where nothing is computed.

    picked: the indices of the window along each axis of the tensor. All of it comes to the CPU.
    Raises: ValueError for a number of terms below 1.
    """
    if most < 1:
        raise ValueError(f"at least one term is needed, got {most}")
    how = computation(steps, number, name)
    if how is None:
        return None
    result = steps[number - 1][name]
    sources = [steps[reads.step - 1][reads.name] for reads in how.reads]
    first = _operand(how.reads[0], sources[0], picked, most)
    if how.kind == "product":
        second = _operand(how.reads[1], sources[1], picked, most)
        n_terms = sources[0].shape[how.reads[0].axes.index(None)]
        added = None
        if result.bias is not None:
            added = result.bias[list(picked[-1])].cpu().expand(first.shape[:-1])
        return Terms(torch.stack((first, second), dim=-1), n_terms, added)
    if how.kind == "rotated":
        return Terms(torch.stack((first, _turns(result, picked)), dim=-1), 2)
    if how.kind == "softmax":
        own = _operand(replace(how.reads[0], axes=_SAME), sources[0], picked, 1)
        row = torch.cat((own, first), dim=-1)
        return Terms(torch.stack((row, torch.ones_like(row)), dim=-1), sources[0].shape[-1])
    factor = torch.full_like(first, result.factor)
    return Terms(torch.stack((first, factor), dim=-1), 1)


def _operand(reads: Reads, source: Named, picked: Sequence[Sequence[int]], most: int) -> Tensor:
    """What a window reads of one tensor, at most `most` terms of each number: (*window, n)."""
    dims = len(picked)
    index = []
    n_terms = 1
    for follows, size in zip(reads.axes, source.shape, strict=True):
        if follows is None:
            n_terms = min(size, most)
            index.append(torch.arange(n_terms).view(*[1] * dims, -1))
            continue
        read = torch.tensor([follows.indices(i) for i in picked[follows.axis]])
        n_terms = max(n_terms, read.shape[1])
        shape = [1] * (dims + 1)
        shape[follows.axis], shape[-1] = read.shape
        index.append(read.view(shape))
    # matrices lie where the model does, the tensors of a kept run on the CPU
    return source.tensor[tuple(index)].cpu().expand(*map(len, picked), n_terms)


def _turns(result: Named, picked: Sequence[Sequence[int]]) -> Tensor:
    """The cosine, and the sine with its sign, of each number of a window: (*window, 2)."""
    assert result.rotation is not None
    cos, sin = (part.cpu() for part in result.rotation)
    columns = torch.tensor(list(picked[-1]))
    sign = torch.where(columns < result.shape[-1] // 2, -1.0, 1.0)
    tokens = torch.tensor(list(picked[-2]))[:, None]
    both = torch.stack((cos[tokens, columns], sin[tokens, columns] * sign), dim=-1)
    return both.expand(*map(len, picked), 2)
