"""Attention between words in every head, compared with all other pairs of words.

A word can consist of several tokens. Weights are averaged over its query tokens and summed over its
key tokens. Because each token is in exactly one unit, a word's weights on all units still sum to 1.

Picking the strongest of many heads is a search: almost every pair has some strong head.
`strongest_head` gives the same maximum for every pair of words, as a baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Unit = Sequence[int]


def unit_weights(weights: Tensor, query: Unit, units: Sequence[Unit]) -> Tensor:
    """Weights from one word to each unit: (..., T, S) -> (..., number of units).

    Mean over the query's tokens, sum over the tokens of a unit. For contributions, this is a sum
    of lengths.
    Raises: ValueError for an empty unit or a token outside the text.
    """
    n_queries, n_keys = weights.shape[-2:]
    _check([query], n_queries)
    return weights[..., list(query), :].mean(-2) @ _members(units, n_keys).to(weights).mT


def unit_rank(shares: Tensor, unit: int) -> Tensor:
    """Rank of a unit by its share, 1 for the largest: (..., units) -> (...) of int64.

    shares: the weight on each unit. Units with equal shares get the same, better rank.
    Raises: ValueError for a unit that doesn't exist.
    """
    _check_index(unit, shares.shape[-1])
    return (shares > shares[..., unit, None]).sum(-1) + 1


def strongest_head(weights: Tensor, units: Sequence[Unit]) -> Tensor:
    """The largest weight of any head for every pair of units.

    Shapes: weights (heads, T, T), with the heads of all layers in one axis -> (units, units), from
    the row's unit to the column's. It processes one head at a time to save memory.
    Raises: ValueError for an empty unit or a token outside the text.
    """
    members = _members(units, weights.shape[-1]).to(weights)
    mean_over = members / members.sum(-1, keepdim=True)
    largest = weights.new_full((len(units), len(units)), -torch.inf)
    for head in weights:
        # (U, T) @ (T, T) @ (T, U): mean over the query's tokens, sum over the key's
        largest = torch.maximum(largest, mean_over @ head @ members.mT)
    return largest


def other_pairs(
    largest: Tensor, ordinary: Tensor, pair: tuple[int, int], *, causal: bool
) -> Tensor:
    """Values of all other possible pairs of two different words: (pairs).

    largest: (units, units), from `strongest_head`. ordinary: (units) of bool, False for units that
    aren't words, such as [CLS]. In a causal model, a word only attends to earlier words.
    Raises: ValueError if the shapes don't match or the pair is out of range.
    """
    n = len(ordinary)
    if largest.shape != (n, n):
        raise ValueError(f"values of shape {tuple(largest.shape)} don't match {n} units")
    for unit in pair:
        _check_index(unit, n)
    itself = torch.eye(n, dtype=torch.bool, device=ordinary.device)
    possible = ordinary[:, None] & ordinary & ~itself
    if causal:
        possible = possible.tril()
    possible[pair] = False
    return largest[possible]


def preference(first: Tensor, second: Tensor, *, margin: float) -> Tensor:
    """1 where `first` is larger by at least `margin`, -1 where `second` is, otherwise 0: int64.

    Raises: ValueError if the shapes differ or the margin isn't positive.
    """
    if first.shape != second.shape or margin <= 0:
        raise ValueError(
            f"preference needs two tensors of the same shape and a margin above 0, got "
            f"{tuple(first.shape)}, {tuple(second.shape)} and {margin}"
        )
    difference = first - second
    return (difference >= margin).long() - (difference <= -margin).long()


def _members(units: Sequence[Unit], n_tokens: int) -> Tensor:
    """Membership matrix (units, tokens) of float32: 1 where the unit contains the token."""
    _check(units, n_tokens)
    members = torch.zeros(len(units), n_tokens)
    for row, unit in zip(members, units, strict=True):
        row[list(unit)] = 1
    return members


def _check(units: Sequence[Unit], n_tokens: int) -> None:
    for unit in units:
        if not unit or min(unit) < 0 or max(unit) >= n_tokens:
            raise ValueError(f"tokens {list(unit)} are not a word of a text with {n_tokens} tokens")


def _check_index(unit: int, n_units: int) -> None:
    if not 0 <= unit < n_units:
        raise ValueError(f"unit must be 0 to {n_units - 1}, got {unit}")
