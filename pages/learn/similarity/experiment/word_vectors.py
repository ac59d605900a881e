"""The dot product of word vectors, and what it is made of.

x . y = |x| * |y| * cos(angle): the length of one, the length of the other, and how far they point
in the same direction. A cosine leaves the lengths out.
Source: the notebook, section 3.3, "dot product is a measure of similarity".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_finite
from attention_core.model.transformer import Transformer

_SHORTEST = 1e-12  # a vector of zeros has no direction: its cosine is 0


@dataclass(frozen=True)
class DotProducts:
    """A vector x (C) against n rows (n, C).

    dots, lengths, cosines: (n), with `dots == length * lengths * cosines`; lengths are those of the
    rows. length: that of x.
    """

    dots: Tensor
    lengths: Tensor
    cosines: Tensor
    length: float

    @property
    def along(self) -> Tensor:
        """How far each row reaches in the direction of x, (n): `dots / length`."""
        return self.lengths * self.cosines

    @property
    def across(self) -> Tensor:
        """How far each row reaches away from the direction of x, (n), never negative."""
        return self.lengths * (1.0 - self.cosines.square()).clamp_min(0.0).sqrt()

    @property
    def degrees(self) -> Tensor:
        """The angle between x and each row, (n), from 0 to 180."""
        return self.cosines.clamp(-1.0, 1.0).acos().rad2deg()


def token_table(model: Transformer) -> Tensor:
    """The vector of every token of the vocabulary, (V, C): the model's own memory, not a copy."""
    if model.embedding is not None:
        return model.embedding
    assert model.unembedding is not None  # a model without one has a table of its own
    return model.unembedding.t()


def products(x: Tensor, rows: Tensor, lengths: Tensor | None = None) -> DotProducts:
    """Dot products, lengths and cosines of x (C) and every one of the rows (n, C).

    lengths: those of the rows (n), if they are known: of a vocabulary they take ten times as long
    as the products.
    Raises: ValueError where x is no vector, or the rows are not as wide as it; NotFiniteError for
    products or lengths that overflow.
    """
    if x.dim() != 1 or rows.dim() != 2 or rows.shape[1] != len(x):
        raise ValueError(f"x must be (C), the rows (n, C): got {(*x.shape,)} and {(*rows.shape,)}")
    dots = rows @ x  # [dot products]
    length = x.norm()
    lengths = rows.norm(dim=-1) if lengths is None else lengths  # [lengths]
    for name, numbers in (("dot products", dots), ("lengths", lengths)):
        require_finite(name, numbers[:, None], first=None)
    cosines = dots / (lengths * length).clamp_min(_SHORTEST)  # [cosines]
    return DotProducts(dots, lengths, cosines, float(length))


def largest(values: Tensor, n: int, *, without: int) -> Tensor:
    """The places of the n largest values (V), the largest first, one place left out: (n).

    Raises: ValueError for fewer than n other values.
    """
    if not 0 < n < len(values):
        raise ValueError(f"{len(values)} values have no {n} largest besides one")
    places = values.topk(n + 1).indices
    return places[places != without][:n]


def nearest_other(vectors: Tensor) -> Tensor:
    """For each vector the place of the other one with the largest cosine: (T, C) -> (T).

    Raises: ValueError for fewer than 2 vectors.
    """
    if len(vectors) < 2:
        raise ValueError(f"{len(vectors)} vectors: the nearest other one needs at least 2")
    return cosines_between(vectors).fill_diagonal_(-torch.inf).argmax(dim=-1)


def mean_cosine(first: Tensor, second: Tensor) -> float:
    """The mean cosine of each vector with the one at its place: (T, C) and (T, C)."""
    return float(torch.nn.functional.cosine_similarity(first, second, dim=-1).mean())


def cosines_between(vectors: Tensor) -> Tensor:
    """The cosine of every two vectors: (T, C) -> (T, T)."""
    directions = vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(_SHORTEST)
    return directions @ directions.T
