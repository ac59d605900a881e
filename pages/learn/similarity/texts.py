"""Two texts through one head: which numbers stay the same and which change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.similarity.heads import HeadOnText

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "weights"
N_LEARNED = 3  # W_q, W_k and W_v are the first of `_tensors`


def changes(first: HeadOnText, second: HeadOnText) -> pd.DataFrame:
    """List each tensor's shape on both texts, and how many of its numbers differ.

    Weights that the mask hides aren't counted.
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
                    f"all {after.numel():,}, because the shape differs"
                    if changed is None
                    else f"{changed:,} of {before.numel():,}"
                ),
            }
        )
    return pd.DataFrame(rows)


def notice(first: HeadOnText, second: HeadOnText) -> str:
    """Say how many parameters differ, and from which token on the weights can differ."""
    from pages.learn.similarity.experiment.scores import n_changed

    learned = zip(_tensors(first)[:N_LEARNED], _tensors(second), strict=False)
    n_others = sum(n_changed(one[-1], other[-1]) or 0 for one, other in learned)
    stays = f"{n_others} of {first.matrices.n_numbers:,} weight parameters changed."
    ids = first.run.tokens.ids, second.run.tokens.ids
    differ = (place for place, (one, other) in enumerate(zip(*ids, strict=False)) if one != other)
    place = next(differ, min(map(len, ids)))
    if ids[0] == ids[1]:
        return f"{stays} Both texts have the same tokens. Type a different second text."
    if not first.run.causal:
        return f"{stays} In an encoder every token sees the whole text, so all weights can change."
    return (
        f"{stays} The texts differ from token {place} on. In a decoder, earlier rows of weights "
        "don't change, because no token sees later tokens."
    )


def _allowed(weights: Tensor) -> Tensor:
    """Flatten the weights (T, T) that a causal mask leaves visible."""
    import torch

    return weights[torch.ones_like(weights).tril() > 0]


def _size(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))


def _tensors(subject: HeadOnText) -> list[tuple[str, str, Tensor]]:
    learned, computed = "weight parameters: learned", "computed from the text"
    matrices, ways = subject.matrices, subject.variants
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
