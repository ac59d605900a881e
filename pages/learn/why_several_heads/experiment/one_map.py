"""Two heads, compared to a single head with one attention map.

The single head gets every advantage except a second map: it is as large as both together, so it has
both heads' values and rows of W_O. Its map is the average of the two, or the best possible one.
With maps A and B and values U and V (multiplied by W_O), two heads output A U + B V. The average
of the maps outputs (A + B)(U + V) / 2, which differs by (A - B)(U - V) / 2. Nothing is lost only if
the maps or the values are equal.

Dimension letters: H query heads, H_kv key/value heads, T queries, S keys, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def written_vectors(v: Tensor, out_weight: Tensor, heads: Sequence[int]) -> Tensor:
    """Multiply the heads' values by their rows of W_O.

    Shapes: v (H_kv, S, D), out_weight (H*D, C), rows in the order of the heads -> (heads, S, C).
    The bias of the output projection is left out, because it doesn't belong to a head.
    Raises: ValueError for a head that the matrix doesn't have.
    """
    n_kv_heads, _, head_size = v.shape
    by_head = out_weight.unflatten(0, (-1, head_size))  # (H*D, C) -> (H, D, C)
    n_heads = len(by_head)
    if not all(0 <= head < n_heads for head in heads):
        raise ValueError(f"heads must be 0 to {n_heads - 1}, got {list(heads)}")
    group = n_heads // n_kv_heads  # query head h reads key/value head h // group
    return torch.stack([v[head // group] @ by_head[head] for head in heads])


def attend_with_maps(weights: Tensor, values: Tensor) -> Tensor:
    """The sum of the heads' outputs for each token: (N, T, S) and (N, S, C) -> (T, C)."""
    return (weights @ values).sum(dim=0)  # [handed on]


def average_map(weights: Tensor) -> Tensor:
    """Average the heads' maps; rows still sum to 1: (N, T, S) -> (T, S)."""
    return weights.mean(dim=0)  # [average]


def attend_with_one_map(one_map: Tensor, values: Tensor) -> Tensor:
    """The output if all heads use the same map: (T, S), (N, S, C) -> (T, C)."""
    return one_map @ values.sum(dim=0)  # [handed on]


def missed_share(two_heads: Tensor, one_head: Tensor) -> Tensor:
    """The length of the difference divided by the length of two heads' output: (T, C) -> (T).

    0 means no error; 1 is the error of an output of zeros. It's 0 if both outputs are zero.
    """
    difference = torch.linalg.vector_norm(two_heads - one_head, dim=-1)  # [difference]
    length = torch.linalg.vector_norm(two_heads, dim=-1)  # [length]
    return torch.where(difference > 0, difference / length, difference)


def best_map(values: Tensor, target: Tensor, visible: Tensor, *, steps: int = 200) -> Tensor:
    """The single map whose output is closest to `target`: (N, S, C), (T, C) -> (T, S).

    Row i is the distribution p over the keys that query i sees (bool `visible`, (T, S)) with the
    smallest ||p (sum of the values) - wanted_i||. The problem is convex and is solved with `steps`
    of projected gradient descent with momentum, in float64 (Beck and Teboulle 2009,
    https://doi.org/10.1137/080716542).
    Raises: ValueError for a query that sees no key.
    """
    if not bool(visible.any(dim=-1).all()):
        raise ValueError("every query must see at least one key")
    keys = values.double().sum(dim=0)  # (N, S, C) -> (S, C)
    products = keys @ keys.T  # (S, S)
    targets = target.double() @ keys.T  # (T, S)
    step = 1.0 / torch.linalg.matrix_norm(products, ord=2).clamp(min=1e-12)
    rows = visible.double() / visible.sum(dim=-1, keepdim=True)
    ahead, momentum = rows, 1.0
    for _ in range(steps):
        change = _to_distributions(ahead - step * (ahead @ products - targets), visible)
        following = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        ahead = change + (momentum - 1.0) / following * (change - rows)
        rows, momentum = change, following
    return rows


def _to_distributions(rows: Tensor, visible: Tensor) -> Tensor:
    """Project each row onto the distributions over its visible keys: (T, S) -> (T, S).

    This lowers every number by the same amount and clips at 0 (Duchi et al. 2008,
    https://doi.org/10.1145/1390156.1390191).
    """
    rows = rows.masked_fill(~visible, -torch.inf)
    ordered = rows.sort(dim=-1, descending=True).values
    counts = torch.arange(1, rows.shape[-1] + 1)
    too_much = (ordered.cumsum(dim=-1) - 1.0) / counts  # if only the k largest stay above 0
    n_kept = (ordered > too_much).sum(dim=-1, keepdim=True)
    return (rows - too_much.gather(-1, n_kept - 1)).clamp(min=0.0)
