"""One head step by step: from the scores to the weights, and one pair of tokens in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from serving.runs import AttentionRun

if TYPE_CHECKING:
    from attention_core import AttentionRecord

SCORES, MASKED, SCALED, WEIGHTS = "scores q · k", "after the mask", "after scaling", "weights"
UNITS = {SCORES: "score", MASKED: "score", SCALED: "scaled score", WEIGHTS: "weight"}
STAGES = tuple(UNITS)


@dataclass(frozen=True)
class Pair:
    """One query and one key of one head: `q`, `k` and `product` (D), and what becomes of them."""

    q: np.ndarray
    k: np.ndarray
    product: np.ndarray
    numbers: pd.DataFrame


def stage(run: AttentionRun, layer: int, head: int, name: str) -> np.ndarray:
    """What the head holds at a step: (T, S); -inf where the query may not look, once masked.

    Raises: ValueError for a name that is not in `STAGES`.
    """
    if name == WEIGHTS:
        weights: np.ndarray = run.weights[layer, head]
        return weights
    if name not in STAGES:
        raise ValueError(f"no step {name!r}, only {STAGES}")
    record = _record(run, layer, head)
    found = {
        SCORES: record.scores,
        MASKED: record.masked_scores,
        SCALED: record.scaled_scores,
    }
    array: np.ndarray = found[name].numpy()
    return array


def pair(run: AttentionRun, layer: int, head: int, query: int, key: int) -> Pair:
    """The query's and the key's vector in this head, their product, and the way to the weight."""
    q = run.q[layer, head, query]
    k = run.k[layer, _kv_head(run, head), key]
    record = _record(run, layer, head)
    weight = run.weights[layer, head, query, key]
    length = run.value_norms[layer, head, key]
    numbers = {
        "sum of the products q · k": record.scores[query, key].item(),
        "after the mask": record.masked_scores[query, key].item(),
        f"times 1/√{len(q)} = {run.scale:.4f}": record.scaled_scores[query, key].item(),
        "weight: the softmax over the row": float(weight),
        "length of v W_O of this key": float(length),
        "contribution: weight × length": float(weight * length),
    }
    table = pd.DataFrame({"step": numbers.keys(), "value": numbers.values()})
    return Pair(q, k, q * k, table)


def _kv_head(run: AttentionRun, head: int) -> int:
    """The key/value head that a query head reads."""
    group_size: int = run.q.shape[1] // run.k.shape[1]
    return head // group_size


def _record(run: AttentionRun, layer: int, head: int) -> AttentionRecord:
    """Attention of this head alone, from the recorded queries, keys and values: (T, D) each."""
    import torch

    from attention_core import attend
    from attention_core.masks import causal_mask

    kv_head = _kv_head(run, head)
    q, k, v = (
        torch.tensor(array)
        for array in (run.q[layer, head], run.k[layer, kv_head], run.v[layer, kv_head])
    )
    mask = causal_mask(len(q), len(k)) if run.causal else None
    return attend(q, k, v, mask=mask, scale=run.scale)
