"""Backward pass of tiled attention, which recomputes the weights tile by tile.

FlashAttention (Dao et al. 2022, https://arxiv.org/abs/2205.14135, algorithm 4): the forward pass
keeps the output and two numbers per row, m and l. Every weight is exp(score - m) / l.
Dimension letters: T queries, S keys, D head size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.attend import attention_scores, mask_scores
from pages.learn.attention_without_the_matrix.experiment.tiles import SoftmaxRows, tiles


@dataclass(frozen=True)
class Gradients:
    """Gradients of one head's queries (T, D), keys (S, D) and values (S, D).

    n_weights: number of recomputed weights. n_live_weights: the most that were in memory together.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    n_weights: int
    n_live_weights: int


def recompute_weights(
    q: Tensor, k: Tensor, rows: SoftmaxRows, scale: float, mask: Tensor | None
) -> Tensor:
    """Recompute the weights (t, s) of queries (t, D) and keys (s, D) from m and l.

    A query that sees no key gets weights of 0.
    """
    scores = attention_scores(q, k) * scale  # [scores]
    if mask is not None:
        scores = mask_scores(scores, mask)
    origin = rows.m.masked_fill(rows.m == -math.inf, 0.0)
    total = rows.l.masked_fill(rows.l == 0, 1.0)
    return torch.exp(scores - origin[:, None]) / total[:, None]  # [weights]


def gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rows: SoftmaxRows,
    of_output: Tensor,
    tile: tuple[int, int],
    *,
    scale: float,
    mask: Tensor | None = None,
) -> Gradients:
    """Gradients of q, k and v of one head, given the output's gradient (T, D).

    rows: result of `attend_in_tiles` in the forward pass. mask: (T, S), as in `attend`.
    Raises: ValueError if the gradient and the output differ in shape, or for a tile size below 1.
    """
    if of_output.shape != rows.o.shape:
        raise ValueError(
            f"the gradient is {tuple(of_output.shape)}, the output {tuple(rows.o.shape)}"
        )
    of_q, of_k, of_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    # sum over keys of weight * its gradient, which the backward pass of the softmax subtracts
    shared = (of_output * rows.output).sum(dim=-1, keepdim=True)
    n_weights = n_at_once = 0
    for queries, keys in tiles(len(q), len(k), tile):
        allowed = None if mask is None else mask[queries, keys]
        if allowed is not None and not allowed.any():
            continue
        weights = recompute_weights(
            q[queries], k[keys], rows.select(queries), scale, allowed
        )  # [weights]
        of_weights = of_output[queries] @ v[keys].T  # [weight gradients]
        of_scores = weights * (of_weights - shared[queries]) * scale  # [score gradients]
        of_v[keys] += weights.T @ of_output[queries]  # [value gradients]
        of_q[queries] += of_scores @ k[keys]  # [query gradients]
        of_k[keys] += of_scores.T @ q[queries]  # [key gradients]
        n_weights += weights.numel()
        n_at_once = max(n_at_once, weights.numel())
    return Gradients(of_q, of_k, of_v, n_weights, n_at_once)
