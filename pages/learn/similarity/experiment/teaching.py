"""Train one token to attend to another, by changing the word vectors or a matrix.

Both follow the gradient of the weight's logarithm, in steps of the same relative size, until the
weight reaches a goal. Dimension letters: T tokens, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.attend import attention_scores
from attention_core.model.config import TransformerConfig
from attention_core.positions.rotary import rotary_angles, rotate
from pages.learn.similarity.experiment.scores import HeadMatrices, ScoreVariants
from pages.learn.similarity.experiment.word_vectors import cosines_between

GOAL = 0.5
STEP, MOST_STEPS = 0.002, 500  # a step's length, as a share of the start's length


@dataclass(frozen=True)
class Lesson:
    """The result of training until the weight reached the goal, or the steps ran out.

    before, after: the weight. result: the trained tensor. share: the distance it moved, as a share
    of its own length (Frobenius norm).
    """

    before: float
    after: float
    result: Tensor
    share: float


def teach(log_weight: Callable[[Tensor], Tensor], start: Tensor) -> Lesson:
    """Move `start` until exp(log_weight(start)) is `GOAL`, or for `MOST_STEPS` steps."""
    with torch.enable_grad():
        change = start.detach().clone().requires_grad_()
        current = log_weight(change)
        before = float(current.detach().exp())
        for _ in range(MOST_STEPS):
            if float(current.detach().exp()) >= GOAL:
                break
            (gradient,) = torch.autograd.grad(current, change)
            length = float(gradient.norm())
            if length == 0.0:
                break
            step = gradient * (STEP * float(start.norm()) / length)
            change = (change + step).detach().requires_grad_()
            current = log_weight(change)
    end = change.detach()
    share = float((end - start).norm() / start.norm())
    return Lesson(before, float(current.detach().exp()), end, share)


def teach_vectors(x: Tensor, query: int, key: int, *, causal: bool) -> Lesson:
    """Move the vectors x (T, C) until softmax(x x^T) gives the key `GOAL` in the query's row.

    Raises: ValueError for tokens that don't exist, or a key after the query in a causal model.
    """
    n_keys = _n_keys(len(x), query, key, causal)

    def log_weight(vectors: Tensor) -> Tensor:
        scores = attention_scores(vectors[query : query + 1], vectors[:n_keys])
        return torch.log_softmax(scores[0], dim=-1)[key]

    return teach(log_weight, x)


def teach_query_matrix(
    config: TransformerConfig, ways: ScoreVariants, matrices: HeadMatrices, query: int, key: int
) -> Lesson:
    """Move W_q (C, D) until the head gives the key `GOAL` in the query's row.

    Raises: the errors of `teach_vectors`.
    """
    n_keys = _n_keys(len(ways.x), query, key, config.causal)
    x, q, keys = ways.x[query], ways.head.q[query], ways.head.k[:n_keys]
    rotation = None
    if config.positions == "rotary":
        places = torch.arange(len(ways.x), device=x.device)  # scaling depends on the text's length
        theta, scaling = config.rope_theta, config.rope_scaling
        cos, sin = rotary_angles(places, config.d_rotary, theta, x.dtype, scaling)
        rotation = cos[query], sin[query]

    def log_weight(matrix: Tensor) -> Tensor:
        change = (x @ (matrix - matrices.query))[None]  # (1, D)
        change = change if rotation is None else rotate(change, rotation)
        scores = attention_scores(q + change, keys) * ways.head.scale
        return torch.log_softmax(scores[0], dim=-1)[key]

    return teach(log_weight, matrices.query)


def largest_change_of_cosines(before: Tensor, after: Tensor) -> float:
    """The largest change of the cosine of two vectors (T, C)."""
    return float((cosines_between(after) - cosines_between(before)).abs().max())


def n_moved(before: Tensor, after: Tensor) -> int:
    """Count the vectors (T, C) that moved by more than a millionth of their length."""
    return int(((after - before).norm(dim=-1) > 1e-6 * before.norm(dim=-1)).sum())


def _n_keys(n_tokens: int, query: int, key: int, causal: bool) -> int:
    """The number of keys that the query sees."""
    n_keys = query + 1 if causal else n_tokens
    if not (0 <= query < n_tokens and 0 <= key < n_keys):
        raise ValueError(f"token {query} of {n_tokens} does not see token {key}")
    return n_keys
