"""How alike the vectors of two positions are, and whether their distance alone decides it.

Dimension letters: N positions, C width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ByDistance:
    """Of all pairs at each distance from 0 to N - 1: mean, least and largest value, (N,) each."""

    mean: Tensor
    low: Tensor
    high: Tensor

    @property
    def spread(self) -> Tensor:
        """How far the pairs at one distance differ, (N,): 0 where the distance decides."""
        return self.high - self.low


def dot_products(table: Tensor) -> Tensor:
    """Of every two rows: (N, C) -> (N, N)."""
    return table @ table.T  # [products]


def cosines(table: Tensor) -> Tensor:
    """The cosine of the angle between every two rows: (N, C) -> (N, N).

    Raises: ValueError for a row of zeros, which has no direction.
    """
    lengths = table.norm(dim=-1, keepdim=True)
    if not lengths.all():
        row = int((lengths == 0).flatten().nonzero()[0])
        raise ValueError(f"row {row} of the table is all zeros, and so has no direction to compare")
    directions = table / lengths  # [directions]
    return directions @ directions.T  # [cosines]


def by_distance(values: Tensor) -> ByDistance:
    """Values (N, N) of pairs of positions, gathered by the distance of the two.

    Raises: ValueError for values that are not square.
    """
    if values.dim() != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"values of pairs must be (N, N), got {tuple(values.shape)}")
    diagonals = [values.diagonal(distance) for distance in range(len(values))]
    mean, low, high = (
        torch.stack([measure(diagonal) for diagonal in diagonals])
        for measure in (torch.mean, torch.min, torch.max)
    )
    return ByDistance(mean, low, high)
