"""Two texts through one head: which numbers stay, and which are computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.similarity.heads import Head

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "weights"
N_LEARNED = 3  # of the tensors: W_q, W_k and W_v stand first


def changes(first: Head, second: Head) -> pd.DataFrame:
    """One row a tensor: its shape on both texts, and how many of its numbers are others.

    Of the weights only those that the mask allows are counted.
    """
    from pages.learn.similarity.experiment.scores import n_changed

    rows = []
    pairs = zip(_tensors(first), _tensors(second), strict=True)
    for (name, kind, before), (_, _, after) in pairs:
        shapes = _size(before), _size(after)
        if name == WEIGHTS and first.run.causal:
            before, after = _allowed(before), _allowed(after)
        changed = n_changed(before, after)
        rows.append(
            {
                "tensor": name,
                "what it is": kind,
                "first text": shapes[0],
                "second text": shapes[1],
                "numbers that differ": (
                    f"all {after.numel():,}: another shape"
                    if changed is None
                    else f"{changed:,} of {before.numel():,}"
                ),
            }
        )
    return pd.DataFrame(rows)


def notice(first: Head, second: Head) -> str:
    """What to notice: what stays, and from where on the weights can change, as a sentence."""
    from pages.learn.similarity.experiment.scores import n_changed

    learned = zip(_tensors(first)[:N_LEARNED], _tensors(second), strict=False)
    n_others = sum(n_changed(one[-1], other[-1]) or 0 for one, other in learned)
    stays = f"{n_others} of {first.matrices.n_numbers:,} weight parameters differ."
    ids = first.run.tokens.ids, second.run.tokens.ids
    differ = (place for place, (one, other) in enumerate(zip(*ids, strict=False)) if one != other)
    place = next(differ, min(map(len, ids)))
    if ids[0] == ids[1]:
        return f"{stays} Both texts are the same tokens: type another one."
    if not first.run.causal:
        return f"{stays} In an encoder every token sees the whole text: all weights may change."
    return (
        f"{stays} The tokens differ from place {place} on. In a decoder no earlier row of weights "
        "changes, because no token sees those that come after it."
    )


def _allowed(weights: Tensor) -> Tensor:
    """The weights that a causal mask leaves of (T, T), as one row."""
    import torch

    return weights[torch.ones_like(weights).tril() > 0]


def _size(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))


def _tensors(shown: Head) -> list[tuple[str, str, Tensor]]:
    learned, computed = "weight parameters: learned", "computed from the text"
    matrices, ways = shown.matrices, shown.ways
    q, k, v = ways.projected
    return [
        ("W_q", learned, matrices.query),
        ("W_k", learned, matrices.key),
        ("W_v", learned, matrices.value),
        ("x", computed, ways.x),
        ("q = x·W_q", computed, q),
        ("k = x·W_k", computed, k),
        ("v = x·W_v", computed, v),
        (WEIGHTS, "attention weights: computed from the text", ways.head.weights),
    ]
