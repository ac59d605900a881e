"""The cost of more heads at a fixed width C: they're smaller, and their scores are noisier.

A head compares two tokens by D = C / H numbers. Here it reads them through a random matrix, as it
would before training. The scores of H heads come from one product with a C x C matrix that is then
split, so more heads don't have more parameters.

Take tokens as vectors of length 1 and a matrix of standard-normal numbers. Then the score of two
tokens, q.k / D with q and k read through the same D columns, equals their cosine c on average and
has a variance of (1 + c^2) / D, so the noise falls as 1 / sqrt(D) (the random projections of
Johnson and Lindenstrauss 1984).

Dimension letters: T tokens, H heads, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.heads import split_heads
from attention_core.ladder import MultiHeadAttention

SMALLEST_HEAD = 4  # head size; with fewer numbers, a score is more noise than cosine


@dataclass(frozen=True)
class ScoreNoise:
    """The error of scores for a width that is split into `n_heads` heads.

    measured: root mean square over all draws. low, high: error of the best and the worst draw.
    theory: square root of the mean of (1 + c^2) / D over all pairs of tokens.
    """

    n_heads: int
    head_size: int
    measured: float
    low: float
    high: float
    theory: float


def head_counts(width: int) -> list[int]:
    """The numbers of heads that a width can be split into, ascending, starting at 1."""
    most = max(1, width // SMALLEST_HEAD)
    return [count for count in range(1, most + 1) if width % count == 0]


def n_parameters(width: int, n_heads: int) -> int:
    """Count the parameters of W_q, W_k, W_v and W_O in an actual layer.

    Raises: ValueError if n_heads doesn't divide the width.
    """
    with torch.device("meta"):  # allocates no memory
        layer = MultiHeadAttention(width, width, 1, 0.0, n_heads)
    matrices = (part for part in layer.parameters() if part.dim() == 2)
    return sum(matrix.numel() for matrix in matrices)


def score_noise(
    x: Tensor, counts: Sequence[int], *, n_draws: int, seed: int
) -> tuple[ScoreNoise, ...]:
    """Measure the noise of scores between tokens (T, C), for each number of heads.

    All numbers of heads split the same `n_draws` random matrices.
    Raises: ValueError for fewer than two tokens, no draw, a number that doesn't divide C, or tokens
    that are all zero.
    """
    n_tokens, width = x.shape
    if n_tokens < 2 or n_draws < 1:
        raise ValueError(f"at least 2 tokens and 1 draw are needed, got {n_tokens} and {n_draws}")
    if bad := [count for count in counts if count < 1 or width % count]:
        raise ValueError(f"a width of {width} cannot be split into {bad} heads")
    if not x.any():
        raise ValueError("the vectors of these tokens are all zero, so they have no cosine")
    x = torch.nn.functional.normalize(x, dim=-1)
    first, second = torch.triu_indices(n_tokens, n_tokens, offset=1)
    cosines = (x @ x.T)[first, second]
    generator = torch.Generator().manual_seed(seed)
    squares = torch.empty(n_draws, len(counts))
    for draw in range(n_draws):
        matrix = torch.randn(width, width, generator=generator)
        read = x @ matrix  # (T, C) @ (C, C) -> (T, C)
        for place, n_heads in enumerate(counts):
            # (T, C) -> (H, T, D), then (H, T, D) @ (H, D, T) -> (H, T, T)
            heads = split_heads(read[None], n_heads)[0]
            scores = heads @ heads.mT / heads.shape[-1]  # [scores]
            errors = scores[:, first, second] - cosines  # [errors]
            squares[draw, place] = errors.square().mean()
    return tuple(
        _noise(width // n_heads, n_heads, by_draw, cosines)
        for n_heads, by_draw in zip(counts, squares.T, strict=True)
    )


def _noise(head_size: int, n_heads: int, by_draw: Tensor, cosines: Tensor) -> ScoreNoise:
    """Summarize one number of heads from mean squares (draws) and the cosines of all pairs."""
    theory = ((1.0 + cosines.square()) / head_size).mean().sqrt()
    return ScoreNoise(
        n_heads,
        head_size,
        measured=float(by_draw.mean().sqrt()),
        low=float(by_draw.min().sqrt()),
        high=float(by_draw.max().sqrt()),
        theory=float(theory),
    )
