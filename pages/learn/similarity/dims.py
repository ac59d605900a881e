"""The softmax of a real layer over the keys, over the queries, and over the heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pages.learn.similarity.heads import Head
from ui.charts.bars import labelled

if TYPE_CHECKING:
    from torch import Tensor

CHOICES = {"dim=-1": -1, "dim=-2": -2, "dim=-3": -3}
_MEANINGS = {
    -1: "Every query divides one whole among the keys: a context is a mean of values.",
    -2: "Every key divides one whole among the queries: what nobody needs is handed out all the "
    "same, and a context may be almost nothing, or the sum of many values.",
    -3: "The heads divide one whole for every pair: some head must look at it, needed or not.",
}


@dataclass(frozen=True)
class Dims:
    """A head's weights (T, T) after a softmax over one dimension, and the sums of all three.

    row_sums: one row a query, as `ui.charts.bars` takes it. table: one row a dimension.
    """

    weights: np.ndarray
    row_sums: pd.DataFrame
    table: pd.DataFrame


def dims(shown: Head, chosen: int) -> Dims:
    """The softmax over dimension `chosen` of the scores (H, T, T) of the head's layer."""
    from attention_core.masks import causal_mask
    from pages.learn.similarity.experiment.softmax_dims import softmax_over, sums

    scores, n_tokens = shown.layer_scores, len(shown.labels)
    mask = causal_mask(n_tokens, n_tokens) if shown.run.causal else None
    weights = softmax_over(scores, chosen, mask)[shown.number].numpy()
    rows = []
    for name, dim in CHOICES.items():
        keys, queries, heads = sums(softmax_over(scores, dim, mask)).values()
        # the map beside the table is of one head, and so are its rows and columns
        keys, queries = keys[shown.number], queries[shown.number]
        seen = heads if mask is None else heads[mask]
        rows.append(
            {
                "softmax": f"{name}: over the {('keys', 'queries', 'heads')[-dim - 1]}",
                "a row sums to": _range(keys),
                "a column sums to": _range(queries),
                "all heads sum to": _range(seen),
                "what it would mean": _MEANINGS[dim],
            }
        )
    return Dims(weights, labelled(shown.labels, weights.sum(axis=-1)), pd.DataFrame(rows))


def future(shown: Head) -> str:
    """How far earlier rows change when the last token is taken away, as a sentence."""
    from attention_core.masks import causal_mask
    from pages.learn.similarity.experiment.softmax_dims import change_without_the_last

    scores, n_tokens = shown.layer_scores, len(shown.labels)
    if not shown.run.causal or n_tokens < 2:
        return ""
    mask = causal_mask(n_tokens, n_tokens)
    by_keys, by_queries = (change_without_the_last(scores, dim, mask) for dim in (-1, -2))
    return (
        "Take the last token away. Over the keys, a weight of an earlier row changes by at most "
        f"{by_keys:.3f} in any head of the layer, over the queries by {by_queries:.3f}: there each "
        "token is divided among those that come later too, and the mask no longer hides the future."
    )


def _range(values: Tensor) -> str:
    low, high = (f"{float(value):.2f}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
