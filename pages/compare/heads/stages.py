"""The steps from scores to weights in one head, and one pair of tokens in detail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from serving.runs import Run

SCORES, MASKED, SCALED, WEIGHTS = "scores q · k", "after the mask", "after scaling", "weights"
UNITS = {SCORES: "score", MASKED: "score", SCALED: "scaled score", WEIGHTS: "weight"}
STAGES = tuple(UNITS)


@dataclass(frozen=True)
class QueryKeyPair:
    """One query and one key of a head, with the steps to their attention weight.

    q, k, product: (D,) each. score: the sum of the product. numbers: one row per step.
    """

    q: np.ndarray
    k: np.ndarray
    product: np.ndarray
    score: float
    numbers: pd.DataFrame


def stage(run: Run, layer: int, head: int, name: str) -> np.ndarray:
    """The head's values (T, S) at a step; masked cells are -inf.

    Raises: ValueError for a name that isn't in `STAGES`.
    """
    if name == WEIGHTS:
        weights: np.ndarray = run.weights[layer, head]
        return weights
    if name not in STAGES:
        raise ValueError(f"step must be one of {STAGES}, got {name!r}")
    record = run.head(layer, head)
    arrays = {
        SCORES: record.scores,
        MASKED: record.masked_scores,
        SCALED: record.scaled_scores,
    }
    array: np.ndarray = arrays[name].numpy()
    return array


def pair(run: Run, layer: int, head: int, query: int, key: int) -> QueryKeyPair:
    """Query and key vector in this head, their product, and the steps to the weight."""
    q = run.q[layer, head, query]
    k = run.k[layer, run.kv_head(head), key]
    record = run.head(layer, head)
    weight = run.weights[layer, head, query, key]
    length = run.value_norms[layer, head, key]
    score = record.scores[query, key].item()
    numbers = {
        "sum of the products q · k": score,
        "after the mask": record.masked_scores[query, key].item(),
        f"times 1/√{len(q)} = {run.scale:.4f}": record.scaled_scores[query, key].item(),
        "weight: the softmax over the row": float(weight),
        "length of v W_O of this key": float(length),
        "contribution: weight × length": float(weight * length),
    }
    table = pd.DataFrame({"step": numbers.keys(), "value": numbers.values()})
    return QueryKeyPair(q, k, q * k, score, table)
