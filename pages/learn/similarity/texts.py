"""Two texts through one head: which numbers stay, and which are computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.similarity.heads import Head

if TYPE_CHECKING:
    from torch import Tensor


def changes(first: Head, second: Head) -> pd.DataFrame:
    """One row a tensor: its shape on both texts, and how many of its numbers are others.

    A token that sees nothing new keeps its row in a decoder. Weights that the mask forbids are 0 in
    both texts and count as unchanged.
    """
    from attention_core.experiments.learn.similarity.scores import n_changed

    rows = []
    pairs = zip(_tensors(first), _tensors(second), strict=True)
    for (name, kind, before), (_, _, after) in pairs:
        changed = n_changed(before, after)
        rows.append(
            {
                "tensor": name,
                "what it is": kind,
                "first text": _size(before),
                "second text": _size(after),
                "numbers that differ": (
                    f"{changed:,} of {before.numel():,}"
                    if changed is not None
                    else f"all {after.numel():,}, in another shape"
                ),
            }
        )
    return pd.DataFrame(rows)


def _size(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))


def _tensors(shown: Head) -> list[tuple[str, str, Tensor]]:
    learned, computed = "weight parameters: learned", "computed from the text"
    matrices, ways = shown.matrices, shown.ways
    return [
        ("W_q", learned, matrices.query),
        ("W_k", learned, matrices.key),
        ("W_v", learned, matrices.value),
        ("x", computed, ways.x),
        ("q = x·W_q", computed, ways.head.q),
        ("k = x·W_k", computed, ways.head.k),
        ("v = x·W_v", computed, ways.head.v),
        ("weights", "attention weights: computed from the text", ways.head.weights),
    ]
