"""Attention tile by tile with an online softmax: the matrix of weights is never there as a whole.

The online softmax is that of Milakov and Gimelshein (2018, https://arxiv.org/abs/1805.02867), the
tiles are those of FlashAttention (Dao et al. 2022, https://arxiv.org/abs/2205.14135); as in its
second version (https://arxiv.org/abs/2307.08691) the output is divided once, at the end.

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
class Rows:
    """What is kept of each row of the matrix while its tiles come and go.

    m: the largest score so far, minus infinity before the first, (..., T). l: the sum of
    exp(score - m) so far, (..., T). o: the same sum with every term times its value, (..., T, D).
    """

    m: Tensor
    l: Tensor  # noqa: E741  the letter of both papers
    o: Tensor

    @property
    def output(self) -> Tensor:
        """The weighted sum of the values so far, o / l, (..., T, D); 0 where no key was seen."""
        return self.o / self.l.masked_fill(self.l == 0, 1.0)[..., None]

    def of(self, queries: slice) -> Rows:
        """The rows of some of the queries."""
        return Rows(self.m[..., queries], self.l[..., queries], self.o[..., queries, :])

    def replaced(self, queries: slice, new: Rows) -> Rows:
        """A copy with new rows for some of the queries."""
        copy = Rows(self.m.clone(), self.l.clone(), self.o.clone())
        copy.m[..., queries], copy.l[..., queries] = new.m, new.l
        copy.o[..., queries, :] = new.o
        return copy


@dataclass(frozen=True)
class TileStep:
    """A tile that was computed: its queries, its keys, its scores, and what it did to the rows.

    scores: scaled, minus infinity where the query may not look, (..., t, s). before: the rows of
    its queries as they were, (..., t). factor: what their sums were multiplied with,
    exp(old m - new m), (..., t). rows: all rows with the tile in them, (..., T).
    """

    queries: slice
    keys: slice
    scores: Tensor
    before: Rows
    factor: Tensor
    rows: Rows


def empty_rows(q: Tensor, v: Tensor) -> Rows:
    """The rows of queries (..., T, D) before any tile."""
    m = q.new_full(q.shape[:-1], -math.inf)
    return Rows(m, torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1]))


def add_tile(rows: Rows, scores: Tensor, v: Tensor) -> tuple[Rows, Tensor]:
    """Take a tile of scores (..., t, s) and its values (..., s, D) into the sums of its rows.

    A larger maximum makes all earlier terms smaller by the same factor, exp(old m - new m): the
    sums are multiplied with it, and no earlier score is needed. Returns the new rows and the
    factors. A row that has seen no key has m = -inf; 0 stands in for it in the exponents, since
    -inf minus -inf is no number.
    """
    m = torch.maximum(rows.m, scores.amax(dim=-1))  # [new maximum]
    origin = m.masked_fill(m == -math.inf, 0.0)
    factor = torch.exp(rows.m - origin)  # [correction]
    terms = torch.exp(scores - origin[..., None])  # [exponentials]
    # [new sum]
    l = rows.l * factor + terms.sum(dim=-1)  # noqa: E741
    o = rows.o * factor[..., None] + unfold_groups(fold_groups(terms, v) @ v, terms)  # [new output]
    return Rows(m, l, o), factor


def tiles(n_queries: int, n_keys: int, tile: tuple[int, int]) -> list[tuple[slice, slice]]:
    """The tiles of a matrix (T, S), each as its queries and its keys, row of tiles by row of tiles.

    tile: at most so many queries and keys. Raises: ValueError for a size below 1.
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
    """Attention one tile after another; a tile in which no query may look is left out.

    Shapes, mask and scale as in `attend`; the mask is read tile by tile. tile: how many queries and
    keys. order: the numbers of `tiles` in the order in which they are computed.
    Raises: ValueError for keys or values that do not fit, a `scale` that is not positive, a tile
    size below 1, or an order that does not hold every tile once.
    """
    if q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        shapes = [tuple(of.shape) for of in (q, k, v)]
        raise ValueError("q {}, k {} and v {} do not fit".format(*shapes))
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    require_positive("scale", scale)
    places = tiles(q.shape[-2], k.shape[-2], tile)
    order = range(len(places)) if order is None else order
    if sorted(order) != list(range(len(places))):
        raise ValueError(f"an order of {len(order)} numbers does not hold {len(places)} tiles once")
    allowed = None if mask is None else mask.expand(*q.shape[:-1], k.shape[-2])

    rows = empty_rows(q, v)
    for number in order:
        queries, keys = places[number]
        may_look = None if allowed is None else allowed[..., queries, keys]
        if may_look is not None and not may_look.any():
            continue
        part = q[..., queries, :]
        reads = fold_groups(part, k)  # the queries of the heads that share keys, below each other
        scores = unfold_groups(attention_scores(reads, k[..., keys, :]), part) * scale
        if may_look is not None:
            scores = mask_scores(scores, may_look)
        before = rows.of(queries)
        after, factor = add_tile(before, scores, v[..., keys, :])
        rows = rows.replaced(queries, after)
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
) -> Rows:
    """The rows once all tiles are through: `output` is the context of `attend`, (..., T, D).

    Arguments and errors: those of `steps`. What is kept beside the output is two numbers a row, m
    and l; every weight is exp(score - m) / l.
    """
    rows = empty_rows(q, v)
    for step in steps(q, k, v, tile, mask=mask, scale=scale, order=order):
        rows = step.rows
    return rows
