"""Two heads, and one head that has a single attention map in their place.

The one head is given every advantage but a second map: it is as large as both together, so it keeps
the values of both and their rows of W_O. Its map is the average of the two, or the best there is.
With A, B the maps and U, V what the heads write for each key (their values through W_O), two heads
hand on A U + B V. The average of the maps hands on (A + B)(U + V) / 2, which differs by
(A - B)(U - V) / 2: nothing is lost only where both maps, or both values, are the same.

Dimension letters: H query heads, H_kv key/value heads, T queries, S keys, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def written(v: Tensor, out_weight: Tensor, heads: Sequence[int]) -> Tensor:
    """What each of these heads writes for a key that gets all its attention, v_j W_O.

    Shapes: v (H_kv, S, D), out_weight (H*D, C), rows in the order of the heads -> (heads, S, C).
    The bias of the output projection belongs to no head; it is left out.
    Raises: ValueError for a head that the matrix does not have.
    """
    n_kv_heads, _, head_size = v.shape
    by_head = out_weight.unflatten(0, (-1, head_size))  # (H*D, C) -> (H, D, C)
    n_heads = len(by_head)
    if not all(0 <= head < n_heads for head in heads):
        raise ValueError(f"heads must be 0 to {n_heads - 1}, got {list(heads)}")
    group = n_heads // n_kv_heads  # query head h reads key/value head h // group
    return torch.stack([v[head // group] @ by_head[head] for head in heads])


def hand_on(weights: Tensor, values: Tensor) -> Tensor:
    """What heads add to each token, all together: (N, T, S) and (N, S, C) -> (T, C)."""
    return (weights @ values).sum(dim=0)  # [handed on]


def average_map(weights: Tensor) -> Tensor:
    """The average of some heads' maps, whose rows still sum to 1: (N, T, S) -> (T, S)."""
    return weights.mean(dim=0)  # [average]


def hand_on_with_one_map(one_map: Tensor, values: Tensor) -> Tensor:
    """What the same heads add if all of them look by one map: (T, S), (N, S, C) -> (T, C)."""
    return one_map @ values.sum(dim=0)  # [handed on]


def missed(two_heads: Tensor, one_head: Tensor) -> Tensor:
    """The length of the difference over the length of what two heads hand on: (T, C) -> (T).

    0 is nothing missed, 1 as much as if nothing were handed on. 0 for a token that gets nothing
    from either.
    """
    difference = torch.linalg.vector_norm(two_heads - one_head, dim=-1)  # [difference]
    length = torch.linalg.vector_norm(two_heads, dim=-1)  # [length]
    return torch.where(difference > 0, difference / length, difference)


def best_map(values: Tensor, wanted: Tensor, visible: Tensor, *, steps: int = 200) -> Tensor:
    """The single map that comes nearest to what is wanted: (N, S, C), (T, C) -> (T, S).

    Row i is a distribution p over the keys that query i sees, bool `visible` (T, S), for which
    ||p (the sum of the values) - wanted_i|| is smallest. The problem is convex; `steps` of
    projected gradient with momentum, in float64, solve it (Beck and Teboulle 2009,
    https://doi.org/10.1137/080716542).
    Raises: ValueError for a query that sees no key.
    """
    if not bool(visible.any(dim=-1).all()):
        raise ValueError("a query that sees no key has no map")
    keys = values.double().sum(dim=0)  # (N, S, C) -> (S, C)
    products = keys @ keys.T  # (S, S)
    targets = wanted.double() @ keys.T  # (T, S)
    step = 1.0 / torch.linalg.matrix_norm(products, ord=2).clamp(min=1e-12)
    rows = visible.double() / visible.sum(dim=-1, keepdim=True)
    ahead, momentum = rows, 1.0
    for _ in range(steps):
        moved = _to_distributions(ahead - step * (ahead @ products - targets), visible)
        following = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - rows)
        rows, momentum = moved, following
    return rows


def _to_distributions(rows: Tensor, visible: Tensor) -> Tensor:
    """The nearest distribution over the visible keys to each row: (T, S) -> (T, S).

    Every number is lowered by the same amount, and what falls below 0 becomes 0 (Duchi et al. 2008,
    https://doi.org/10.1145/1390156.1390191).
    """
    rows = rows.masked_fill(~visible, -torch.inf)
    ordered = rows.sort(dim=-1, descending=True).values
    counts = torch.arange(1, rows.shape[-1] + 1)
    too_much = (ordered.cumsum(dim=-1) - 1.0) / counts  # if the k largest alone stay above 0
    n_kept = (ordered > too_much).sum(dim=-1, keepdim=True)
    return (rows - too_much.gather(-1, n_kept - 1)).clamp(min=0.0)
