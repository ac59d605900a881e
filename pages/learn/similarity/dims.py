"""A layer's softmax over the keys, the queries or the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.similarity.heads import HeadOnText
from ui.charts.bars import label_table

if TYPE_CHECKING:
    from torch import Tensor

CHOICES = {"dim=-1": -1, "dim=-2": -2, "dim=-3": -3}
_MEANINGS = {
    -1: "Each query distributes 100% over the keys, so a context vector is a weighted average of "
    "values.",
    -2: "Each key must distribute 100% over the queries, needed or not. Some context vectors end "
    "up close to 0, and others add up many values.",
    -3: "The heads share 100% for each query and key, so some head must attend to every pair.",
}


@dataclass(frozen=True)
class Dims:
    """A head's weights (T, T) after a softmax over one dimension, and the sums for all three.

    row_sums: one row per query, in the format of `ui.charts.bars`. table: one row per dimension.
    """

    weights: np.ndarray
    row_sums: pd.DataFrame
    table: pd.DataFrame


def dims(subject: HeadOnText, choice: int) -> Dims:
    """Apply the softmax over dimension `choice` to the layer's scores (H, T, T)."""
    from attention_core.masks import causal_mask
    from pages.learn.similarity.experiment.softmax_dims import softmax_over, sums

    scores, n_tokens = subject.layer_scores, len(subject.labels)
    mask = causal_mask(n_tokens, n_tokens) if subject.run.causal else None
    weights = softmax_over(scores, choice, mask)[subject.number].numpy()
    rows = []
    for name, dim in CHOICES.items():
        keys, queries, heads = sums(softmax_over(scores, dim, mask)).values()
        # the map shows one head, so the table's row and column sums are for that head
        keys, queries = keys[subject.number], queries[subject.number]
        visible = heads if mask is None else heads[mask]
        rows.append(
            {
                "softmax": f"{name}: over the {('keys', 'queries', 'heads')[-dim - 1]}",
                "a row sums to": _range(keys),
                "a column sums to": _range(queries),
                "all heads sum to": _range(visible),
                "what it means": _MEANINGS[dim],
            }
        )
    return Dims(weights, label_table(subject.labels, weights.sum(axis=-1)), pd.DataFrame(rows))


def future(subject: HeadOnText) -> str:
    """Say how much the earlier rows change if the last token is removed; empty for encoders."""
    from attention_core.masks import causal_mask
    from pages.learn.similarity.experiment.softmax_dims import change_without_the_last

    scores, n_tokens = subject.layer_scores, len(subject.labels)
    if not subject.run.causal or n_tokens < 2:
        return ""
    mask = causal_mask(n_tokens, n_tokens)
    by_keys, by_queries = (change_without_the_last(scores, dim, mask) for dim in (-1, -2))
    return (
        "A softmax over the queries leaks the future. If you remove the last token, weights in "
        f"earlier rows change by up to {by_queries:.3f}, because each key was also shared with "
        f"that token. With a softmax over the keys they change by at most {by_keys:.3f}."
    )


def _range(values: Tensor) -> str:
    low, high = (f"{float(value):.2f}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
