"""Tiled attention with an online softmax, which never builds the whole matrix.

Sources: online softmax (Milakov and Gimelshein 2018, https://arxiv.org/abs/1805.02867) and
FlashAttention (Dao et al. 2022, https://arxiv.org/abs/2205.14135). As in FlashAttention-2
(https://arxiv.org/abs/2307.08691), the output is divided only once, at the end.

Dimension letters: B batch, H query heads, H_kv key/value heads, T queries, S keys, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.attend import attention_scores, fold_groups, mask_scores, unfold_groups
from attention_core.checks import require_int, require_positive


@dataclass(frozen=True)
class SoftmaxRows:
    """Running values of each row of the matrix.

    m: (..., T), the largest score so far, initially minus infinity. l: (..., T), the sum of
    exp(score - m) so far. o: (..., T, D), the same sum with each term multiplied by its value.
    """

    m: Tensor
    l: Tensor  # noqa: E741  named as in both papers
    o: Tensor

    @property
    def output(self) -> Tensor:
        """Weighted mean of the values so far, o / l, (..., T, D); 0 without keys."""
        return self.o / self.l.masked_fill(self.l == 0, 1.0)[..., None]

    def select(self, queries: slice) -> SoftmaxRows:
        """The rows of the given queries."""
        return SoftmaxRows(self.m[..., queries], self.l[..., queries], self.o[..., queries, :])

    def replace_rows(self, queries: slice, new: SoftmaxRows) -> SoftmaxRows:
        """A copy with new rows for the given queries."""
        copy = SoftmaxRows(self.m.clone(), self.l.clone(), self.o.clone())
        copy.m[..., queries], copy.l[..., queries] = new.m, new.l
        copy.o[..., queries, :] = new.o
        return copy


@dataclass(frozen=True)
class TileStep:
    """One computed tile and its effect on the rows.

    scores: (..., t, s), scaled, minus infinity where masked. before: (..., t), the rows of its
    queries before the tile. factor: (..., t), exp(old m - new m), which rescaled their sums.
    rows: (..., T), all rows after the tile.
    """

    queries: slice
    keys: slice
    scores: Tensor
    before: SoftmaxRows
    factor: Tensor
    rows: SoftmaxRows


def empty_rows(q: Tensor, v: Tensor) -> SoftmaxRows:
    """Initial rows for queries (..., T, D)."""
    m = q.new_full(q.shape[:-1], -math.inf)
    return SoftmaxRows(m, torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1]))


def add_tile(rows: SoftmaxRows, scores: Tensor, v: Tensor) -> tuple[SoftmaxRows, Tensor]:
    """Add a tile of scores (..., t, s) and its values (..., s, D) to the rows.

    A larger maximum shrinks all earlier terms by the same factor, exp(old m - new m), so the sums
    are multiplied by it, and earlier scores aren't needed. Returns the new rows and the factors.
    A row that has seen no key has m = -inf; the exponents use 0 instead because -inf - (-inf) is
    nan.
    """
    m = torch.maximum(rows.m, scores.amax(dim=-1))  # [new maximum]
    origin = m.masked_fill(m == -math.inf, 0.0)
    factor = torch.exp(rows.m - origin)  # [correction]
    terms = torch.exp(scores - origin[..., None])  # [exponentials]
    # [new sum]
    l = rows.l * factor + terms.sum(dim=-1)  # noqa: E741
    o = rows.o * factor[..., None] + unfold_groups(fold_groups(terms, v) @ v, terms)  # [new output]
    return SoftmaxRows(m, l, o), factor


def tiles(n_queries: int, n_keys: int, tile: tuple[int, int]) -> list[tuple[slice, slice]]:
    """Tiles of a matrix (T, S) as slices of queries and keys, row by row.

    tile: queries and keys per tile, fewer at the edges. Raises: ValueError for a size below 1.
    """
    for name, size in zip(
        ("n_queries", "n_keys", "queries of a tile", "keys of a tile"),
        (n_queries, n_keys, *tile),
        strict=True,
    ):
        require_int(name, size)
    rows, columns = (
        [slice(start, min(start + size, count)) for start in range(0, count, size)]
        for count, size in zip((n_queries, n_keys), tile, strict=True)
    )
    return [(queries, keys) for queries in rows for keys in columns]


def steps(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tile: tuple[int, int],
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    order: Sequence[int] | None = None,
) -> Iterator[TileStep]:
    """Compute attention tile by tile, skipping tiles that are fully masked.

    Shapes, mask and scale: as in `attend`. tile: queries and keys per tile. order: indices into
    `tiles` in the order of computation.
    Raises: ValueError for keys or values that don't match, a `scale` that isn't positive, a tile
    size below 1, or an order that doesn't contain every tile exactly once.
    """
    if q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        shapes = [tuple(of.shape) for of in (q, k, v)]
        raise ValueError("q {}, k {} and v {} do not fit".format(*shapes))
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    require_positive("scale", scale)
    places = tiles(q.shape[-2], k.shape[-2], tile)
    order = range(len(places)) if order is None else order
    if sorted(order) != list(range(len(places))):
        raise ValueError(
            f"the order must contain each of {len(places)} tiles once, got {list(order)}"
        )
    allowed = None if mask is None else mask.expand(*q.shape[:-1], k.shape[-2])

    rows = empty_rows(q, v)
    for number in order:
        queries, keys = places[number]
        may_look = None if allowed is None else allowed[..., queries, keys]
        if may_look is not None and not may_look.any():
            continue
        part = q[..., queries, :]
        reads = fold_groups(part, k)  # stack the queries of heads that share keys
        scores = unfold_groups(attention_scores(reads, k[..., keys, :]), part) * scale
        if may_look is not None:
            scores = mask_scores(scores, may_look)
        before = rows.select(queries)
        after, factor = add_tile(before, scores, v[..., keys, :])
        rows = rows.replace_rows(queries, after)
        yield TileStep(queries, keys, scores, before, factor, rows)


def attend_in_tiles(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tile: tuple[int, int],
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    order: Sequence[int] | None = None,
) -> SoftmaxRows:
    """Run all tiles and return the final rows.

    `output` is the context of `attend`, (..., T, D). Arguments and errors: as in `steps`. Besides
    the output, two numbers per row are kept; every weight is exp(score - m) / l.
    """
    rows = empty_rows(q, v)
    for step in steps(q, k, v, tile, mask=mask, scale=scale, order=order):
        rows = step.rows
    return rows
