"""The dot product of word vectors and its parts.

x . y = |x| * |y| * cos(angle): both lengths, times how similar the directions are. The cosine
alone ignores the lengths.
Source: the notebook, section 3.3, "dot product is a measure of similarity".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_finite
from attention_core.model.transformer import Transformer

_SHORTEST = 1e-12  # avoids 0/0: a vector of zeros has no direction, and its cosine is 0


@dataclass(frozen=True)
class DotProducts:
    """A vector x (C) compared with n rows (n, C).

    dots, lengths, cosines: (n), with `dots == length * lengths * cosines`. lengths: lengths of the
    rows. length: length of x.
    """

    dots: Tensor
    lengths: Tensor
    cosines: Tensor
    length: float

    @property
    def along(self) -> Tensor:
        """The component of each row along x, (n): `dots / length`."""
        return self.lengths * self.cosines

    @property
    def across(self) -> Tensor:
        """The length of each row's component perpendicular to x, (n)."""
        return self.lengths * (1.0 - self.cosines.square()).clamp_min(0.0).sqrt()

    @property
    def degrees(self) -> Tensor:
        """The angle between x and each row, (n), from 0 to 180."""
        return self.cosines.clamp(-1.0, 1.0).acos().rad2deg()


def token_table(model: Transformer) -> Tensor:
    """The vectors of all tokens in the vocabulary, (V, C), without copying them."""
    if model.embedding is not None:
        return model.embedding
    assert model.unembedding is not None  # models without an unembedding have an embedding
    return model.unembedding.t()


def products(x: Tensor, rows: Tensor, lengths: Tensor | None = None) -> DotProducts:
    """Compute the dot products, lengths and cosines of x (C) and each row (n, C).

    lengths: lengths of the rows (n), if they are known. For a whole vocabulary, computing them
    takes ten times as long as the products.
    Raises: ValueError if x isn't a vector or the rows have another width; NotFiniteError for
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
    """The indices (n) of the largest values (V), largest first, leaving out one index.

    Raises: ValueError for fewer than n other values.
    """
    if not 0 < n < len(values):
        raise ValueError(f"n must be from 1 to {len(values) - 1} for {len(values)} values, got {n}")
    places = values.topk(n + 1).indices
    return places[places != without][:n]


def nearest_other(vectors: Tensor) -> Tensor:
    """For each vector, the index of the other one with the largest cosine: (T, C) -> (T).

    Raises: ValueError for fewer than 2 vectors.
    """
    if len(vectors) < 2:
        raise ValueError(f"at least 2 vectors are needed, got {len(vectors)}")
    return cosines_between(vectors).fill_diagonal_(-torch.inf).argmax(dim=-1)


def mean_cosine(first: Tensor, second: Tensor) -> float:
    """The mean cosine of corresponding vectors: (T, C) and (T, C)."""
    return float(torch.nn.functional.cosine_similarity(first, second, dim=-1).mean())


def cosines_between(vectors: Tensor) -> Tensor:
    """The cosine of every two vectors: (T, C) -> (T, T)."""
    directions = vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(_SHORTEST)
    return directions @ directions.T
