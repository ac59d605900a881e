"""Dropout with visible draws, and the average of many draws.

The draws equal those of `nn.functional.dropout` on the CPU for the same RNG state. Here they come
from a separate generator, so other random draws can't affect them.
Source: Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html. This is inverted
dropout: kept cells are scaled during training, and nothing is scaled afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.lecture_inputs import DROPOUT_SHAPE, SEED_DROPOUT


@dataclass(frozen=True)
class DropoutDraw:
    """One draw: `before`, `keep_mask` (1 or 0) and `after` have the same shape."""

    before: Tensor
    keep_mask: Tensor
    after: Tensor

    @property
    def row_sums(self) -> Tensor:
        """Row sums after the draw: (..., T, 1)."""
        return self.after.sum(dim=-1, keepdim=True)


def apply_dropout(weights: Tensor, p: float, generator: torch.Generator) -> DropoutDraw:
    """Keep every cell with probability 1 - p and scale kept cells by 1 / (1 - p).

    Raises: ValueError for p outside [0, 1).
    """
    _check(p)
    kept = torch.empty_like(weights).bernoulli_(1.0 - p, generator=generator)
    after = weights * (kept / (1.0 - p))  # [after dropout]
    return DropoutDraw(weights, kept, after)


def apply_seeded_dropout(weights: Tensor, p: float, seed: int) -> DropoutDraw:
    """Draw once from a seed."""
    return apply_dropout(weights, p, torch.Generator().manual_seed(seed))


def lecture_draw(p: float, seed: int = SEED_DROPOUT) -> DropoutDraw:
    """The article's example: a random matrix in [0, 1), then dropout, from one seed."""
    generator = torch.Generator().manual_seed(seed)
    return apply_dropout(torch.rand(DROPOUT_SHAPE, generator=generator), p, generator)


@dataclass(frozen=True)
class Deviations:
    """Deviation of the average of n draws from the original weights, for several n.

    Computed over all cells with a weight above zero. largest, mean: absolute deviations, (N,).
    expected: mean absolute deviation predicted by the normal approximation. One draw has variance
    w^2 p / (1 - p), so it's sqrt(2 / pi) * mean(w) * sqrt(p / (1 - p) / n).
    """

    draws: tuple[int, ...]
    largest: Tensor
    mean: Tensor
    expected: Tensor


def deviations(weights: Tensor, p: float, seed: int, draws: Sequence[int]) -> Deviations:
    """Average the first n draws for every n in `draws`, in one pass.

    Memory: max(draws) * cells * 5 bytes.
    Raises: ValueError for p outside [0, 1), draws below 1, or no weight above zero.
    """
    _check(p)
    if not draws or min(draws) < 1:
        raise ValueError(f"numbers of draws must be at least 1, got {list(draws)}")
    cells = weights[weights > 0.0]
    if not cells.numel():
        raise ValueError("no weight is above zero")
    generator = torch.Generator().manual_seed(seed)
    kept = torch.empty(max(draws), cells.numel(), dtype=torch.uint8)
    kept.bernoulli_(1.0 - p, generator=generator)
    count = torch.tensor(draws)
    times_kept = kept.cumsum(dim=0, dtype=torch.int32)[count - 1]
    average = cells * (times_kept / count[:, None]) / (1.0 - p)
    away = (average - cells).abs()
    spread = math.sqrt(2.0 / math.pi) * float(cells.mean()) * math.sqrt(p / (1.0 - p))
    return Deviations(
        draws=tuple(draws),
        largest=away.max(dim=1).values,
        mean=away.mean(dim=1),
        expected=spread / count.sqrt(),
    )


def _check(p: float) -> None:
    if not 0.0 <= p < 1.0:
        raise ValueError(f"p must be at least 0 and below 1, got {p}")
