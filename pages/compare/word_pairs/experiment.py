"""How much one word of a sentence takes from another, in every head, and how that compares.

A word may be several tokens. What it takes is the mean over its query tokens, and what is taken
from it is the sum over its key tokens: so the shares that one word takes from all units of a text,
each token in exactly one of them, still add up to 1.

To pick the strongest of many heads after looking at all of them is a search: some head is strong
for almost any pair. `strongest_head` of every pair of words is the yardstick for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Unit = Sequence[int]


def taken_from_units(weights: Tensor, query: Unit, units: Sequence[Unit]) -> Tensor:
    """What the tokens of one word take from each unit: (..., T, S) -> (..., number of units).

    Mean over the query's tokens, sum over the tokens of a unit. Works for contributions too, as a
    sum of lengths.
    Raises: ValueError for a unit without tokens or with one outside the text.
    """
    n_queries, n_keys = weights.shape[-2:]
    _check([query], n_queries)
    return weights[..., list(query), :].mean(-2) @ _members(units, n_keys).to(weights).mT


def rank_of_unit(shares: Tensor, unit: int) -> Tensor:
    """Which place a unit has among all, 1 for the largest: (..., units) -> (...) of int64.

    shares: how much is taken from each unit. Units with equal shares get the same, better place.
    Raises: ValueError for a unit that does not exist.
    """
    _check_index(unit, shares.shape[-1])
    return (shares > shares[..., unit, None]).sum(-1) + 1


def strongest_head(weights: Tensor, units: Sequence[Unit]) -> Tensor:
    """For every pair of units the largest weight that any head gives it.

    Shapes: weights (heads, T, T), heads of all layers in one axis -> (units, units), row takes
    from column. One head at a time: nothing larger than one head's matrix is made on the way.
    Raises: ValueError for a unit without tokens or with one outside the text.
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
    """The values of all other pairs of two different words that the model can have: (pairs).

    largest (units, units) of `strongest_head`; ordinary (units) of bool, False for units that are
    no words, such as [CLS]. In a causal model a word takes only from words before it.
    Raises: ValueError when the shapes do not fit or the pair is not in them.
    """
    n = len(ordinary)
    if largest.shape != (n, n):
        raise ValueError(f"{tuple(largest.shape)} values do not fit {n} units")
    for unit in pair:
        _check_index(unit, n)
    itself = torch.eye(n, dtype=torch.bool, device=ordinary.device)
    possible = ordinary[:, None] & ordinary & ~itself
    if causal:
        possible = possible.tril()
    possible[pair] = False
    return largest[possible]


def preference(first: Tensor, second: Tensor, *, margin: float) -> Tensor:
    """1 where `first` is larger by at least `margin`, -1 where `second` is, else 0: int64.

    Raises: ValueError when the shapes differ or the margin is not positive.
    """
    if first.shape != second.shape or margin <= 0:
        raise ValueError(
            f"preference needs two tensors of one shape and a margin above 0, got "
            f"{tuple(first.shape)}, {tuple(second.shape)} and {margin}"
        )
    difference = first - second
    return (difference >= margin).long() - (difference <= -margin).long()


def _members(units: Sequence[Unit], n_tokens: int) -> Tensor:
    """(units, tokens) of float32: 1 where the token belongs to the unit."""
    _check(units, n_tokens)
    members = torch.zeros(len(units), n_tokens)
    for row, unit in zip(members, units, strict=True):
        row[list(unit)] = 1
    return members


def _check(units: Sequence[Unit], n_tokens: int) -> None:
    for unit in units:
        if not unit or min(unit) < 0 or max(unit) >= n_tokens:
            raise ValueError(f"a word of tokens {list(unit)} is not in a text of {n_tokens}")


def _check_index(unit: int, n_units: int) -> None:
    if not 0 <= unit < n_units:
        raise ValueError(f"no unit {unit} among {n_units}")
