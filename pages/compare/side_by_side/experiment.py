"""Attention maps over groups of tokens, and the difference of two maps over the same groups.

Different models split a text differently, so maps are compared over groups of tokens with the same
characters. Weights are summed over the keys of a group and averaged over its queries, which keeps
the sum of each row. Clark et al. 2019 (section 4.1, https://arxiv.org/abs/1906.04341) merge word
pieces in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Groups = Sequence[Sequence[int]]


def merge_tokens(weights: Tensor, query_groups: Groups, key_groups: Groups) -> Tensor:
    """Weights summed over the keys of each group and averaged over its queries.

    Shapes: weights (..., T, S), Q query groups and K key groups -> (..., Q, K). A row sums to 1 if
    every key is in a group.
    Raises: ValueError for an empty group, a token outside the map, or a token in two groups.
    """
    queries = _membership(query_groups, weights.shape[-2], "query", weights)  # (Q, T)
    keys = _membership(key_groups, weights.shape[-1], "key", weights)  # (K, S)
    averaged = queries / queries.sum(-1, keepdim=True) @ weights  # [averaged queries]
    return averaged @ keys.T  # [summed keys]


def visible_groups(query_groups: Groups, key_groups: Groups, *, causal: bool) -> Tensor:
    """Whether any query of a group can see any key of another group: bool (Q, K).

    With `causal`, a query sees the keys up to its own position.
    Raises: ValueError for an empty group.
    """
    if not all(map(len, [*query_groups, *key_groups])):
        raise ValueError("a group must contain at least one token")
    last = torch.tensor([max(group) for group in query_groups], dtype=torch.long)
    first = torch.tensor([min(group) for group in key_groups], dtype=torch.long)
    visible = first <= last[:, None]
    return visible if causal else torch.ones_like(visible)


def renormalize(weights: Tensor, keep: Tensor) -> Tensor:
    """Each row's weights on the kept keys, divided by their sum.

    Shapes: weights (..., Q, K), kept bool (Q, K) -> (..., Q, K), 0 where not kept. A row without
    weight on any kept key is NaN.
    """
    remaining = weights.masked_fill(~keep, 0.0)
    return remaining / remaining.sum(-1, keepdim=True)


def difference(left: Tensor, right: Tensor, comparable: Tensor) -> Tensor:
    """Left minus right, NaN where the two can't be compared.

    Shapes: left and right (..., Q, K), comparable bool (Q, K) -> (..., Q, K).
    Raises: ValueError for maps of different shapes.
    """
    if left.shape != right.shape:
        raise ValueError(f"maps of shapes {tuple(left.shape)} and {tuple(right.shape)} don't match")
    return (left - right).masked_fill(~comparable, torch.nan)  # [difference]


def _membership(groups: Groups, size: int, kind: str, like: Tensor) -> Tensor:
    """Membership matrix (groups, size): 1 where the group contains the token."""
    members = like.new_zeros(len(groups), size)
    grouped: set[int] = set()
    for number, group in enumerate(groups):
        if not group:
            raise ValueError(f"{kind} group {number} is empty")
        for token in group:
            if not 0 <= token < size:
                raise ValueError(
                    f"token {token} of {kind} group {number} isn't in a map of {size} tokens"
                )
            if token in grouped:
                raise ValueError(f"token {token} is in two {kind} groups")
            grouped.add(token)
            members[number, token] = 1
    return members
