"""Attention maps over groups of tokens, and the difference of two maps over the same groups.

Models cut a text differently; over groups of tokens that hold the same characters their maps can be
compared. A weight says how much of a value is taken, so what a group of keys gets is the sum over
its tokens; a group of queries looks as its tokens do on average. Both together keep the sum of a
row (Clark et al. 2019, section 4.1, https://arxiv.org/abs/1906.04341, merge word pieces like this).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Groups = Sequence[Sequence[int]]


def merge_tokens(weights: Tensor, query_groups: Groups, key_groups: Groups) -> Tensor:
    """Weights summed over the keys of a group and averaged over the queries of a group.

    Shapes: weights (..., T, S), Q query groups and K key groups -> (..., Q, K). A row still sums to
    what its tokens give to the keys in the groups: to 1 when every key is in one.
    Raises: ValueError for an empty group, a token outside the map, or one in two groups.
    """
    queries = _membership(query_groups, weights.shape[-2], "query", weights)  # (Q, T)
    keys = _membership(key_groups, weights.shape[-1], "key", weights)  # (K, S)
    averaged = queries / queries.sum(-1, keepdim=True) @ weights  # [averaged queries]
    return averaged @ keys.T  # [summed keys]


def visible_groups(query_groups: Groups, key_groups: Groups, *, causal: bool) -> Tensor:
    """Whether any query of a group may see any key of another: bool (Q, K).

    With `causal` a query sees the keys up to its own position.
    Raises: ValueError for an empty group.
    """
    if not all(map(len, [*query_groups, *key_groups])):
        raise ValueError("a group without a token can see nothing and be seen by none")
    last = torch.tensor([max(group) for group in query_groups], dtype=torch.long)
    first = torch.tensor([min(group) for group in key_groups], dtype=torch.long)
    visible = first <= last[:, None]
    return visible if causal else torch.ones_like(visible)


def renormalised(weights: Tensor, kept: Tensor) -> Tensor:
    """Rows over the kept keys alone, divided by what they gave to these, so that they sum to 1.

    Shapes: weights (..., Q, K), kept bool (Q, K) -> (..., Q, K), 0 where not kept. A row that gave
    nothing to the kept keys is NaN: there is nothing to share out.
    """
    remaining = weights.masked_fill(~kept, 0.0)
    return remaining / remaining.sum(-1, keepdim=True)


def difference(left: Tensor, right: Tensor, comparable: Tensor) -> Tensor:
    """Left minus right, with its sign; NaN where the two cannot be compared.

    Shapes: left and right (..., Q, K), comparable bool (Q, K) -> (..., Q, K).
    Raises: ValueError for maps of different shapes.
    """
    if left.shape != right.shape:
        raise ValueError(f"maps of {tuple(left.shape)} and {tuple(right.shape)} have no difference")
    return (left - right).masked_fill(~comparable, torch.nan)  # [difference]


def _membership(groups: Groups, size: int, kind: str, like: Tensor) -> Tensor:
    """(groups, size): 1 where a token is in a group."""
    members = like.new_zeros(len(groups), size)
    grouped: set[int] = set()
    for number, group in enumerate(groups):
        if not group:
            raise ValueError(f"{kind} group {number} is empty")
        for token in group:
            if not 0 <= token < size:
                raise ValueError(f"{kind} group {number} holds token {token} of {size}")
            if token in grouped:
                raise ValueError(f"token {token} is in two {kind} groups")
            grouped.add(token)
            members[number, token] = 1
    return members
