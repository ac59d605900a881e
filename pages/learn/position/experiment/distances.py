"""Similarity of position vectors, and whether it depends only on the distance.

Dimension letters: N positions, C width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ByDistance:
    """Mean, smallest and largest value of all pairs at each distance, (N,) each."""

    mean: Tensor
    low: Tensor
    high: Tensor

    @property
    def spread(self) -> Tensor:
        """Range of the values at each distance, (N,); 0 if only the distance matters."""
        return self.high - self.low


def dot_products(table: Tensor) -> Tensor:
    """Dot products of all pairs of rows: (N, C) -> (N, N)."""
    return table @ table.T  # [products]


def cosines(table: Tensor) -> Tensor:
    """Cosines of all pairs of rows: (N, C) -> (N, N).

    Raises: ValueError for a row of zeros, which has no direction.
    """
    lengths = table.norm(dim=-1, keepdim=True)
    if not lengths.all():
        row = int((lengths == 0).flatten().nonzero()[0])
        raise ValueError(f"row {row} of the table is all zeros, so it has no direction")
    directions = table / lengths  # [directions]
    return directions @ directions.T  # [cosines]


def by_distance(values: Tensor) -> ByDistance:
    """Group the values (N, N) of pairs of positions by distance.

    Raises: ValueError for values that aren't square.
    """
    if values.dim() != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"values of pairs must be (N, N), got {tuple(values.shape)}")
    diagonals = [values.diagonal(distance) for distance in range(len(values))]
    mean, low, high = (
        torch.stack([measure(diagonal) for diagonal in diagonals])
        for measure in (torch.mean, torch.min, torch.max)
    )
    return ByDistance(mean, low, high)
