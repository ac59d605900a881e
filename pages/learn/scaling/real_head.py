"""A head of a model on a visitor's text, at its own scale and at another one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from serving import models, runs
from serving.cache import kept
from serving.limits import RUN_CACHE_BYTES
from ui.widgets.controls import HeadChoice

FACTORS = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0,
           "2": 2.0, "4": 4.0, "8": 8.0, "16": 16.0}  # fmt: skip
KEPT, REMOVED, FACTOR = "as in the model", "removed", "times a factor"
SCALES = [KEPT, REMOVED, FACTOR]


@dataclass(frozen=True)
class _Vectors:
    """Queries (layers, H, T, D) and keys (layers, H_kv, T, D) of a model on a text, float32."""

    q: np.ndarray
    k: np.ndarray
    labels: tuple[str, ...]
    causal: bool


@dataclass(frozen=True)
class RescaledHead:
    """A head's weights (T, T) at its own scale and at another one; `rows` holds the numbers."""

    labels: tuple[str, ...]
    causal: bool
    scales: tuple[float, float]
    original: np.ndarray
    changed: np.ndarray
    rows: pd.DataFrame
    summary: pd.DataFrame


def rescaled_head(choice: HeadChoice, text: str, how: str, factor: str) -> RescaledHead:
    """The head of the model on the text, its scale removed, multiplied, or as it was.

    Raises: what `serving.runs.recorded` raises.
    """
    import torch

    from attention_core.experiments.learn.scaling.divisors import weights_at_scale

    found = _vectors_of(choice.entry.spec.name, text)
    group = found.q.shape[1] // found.k.shape[1]
    q = torch.from_numpy(found.q[choice.layer, choice.head])
    k = torch.from_numpy(found.k[choice.layer, choice.head // group])
    own = 1.0 / math.sqrt(q.shape[-1])
    scale = {KEPT: own, REMOVED: 1.0, FACTOR: own * FACTORS[factor]}[how]
    original, changed = (
        weights_at_scale(q, k, size, causal=found.causal).numpy() for size in (own, scale)
    )
    rows = _rows(found, original, changed)
    return RescaledHead(
        found.labels,
        found.causal,
        (own, scale),
        original,
        changed,
        rows,
        _summary(rows, own, scale),
    )


@kept(RUN_CACHE_BYTES // 2, key=lambda name, text: (*models.key(name), text))
def _vectors_of(name: str, text: str) -> _Vectors:
    import torch

    model, tokens, records = runs.recorded(name, text)
    q, k = (
        torch.stack([getattr(record, part)[0] for record in records]).float().cpu().numpy()
        for part in "qk"
    )
    return _Vectors(q, k, tuple(tokens.labels), model.core.config.causal)


def _rows(found: _Vectors, original: np.ndarray, changed: np.ndarray) -> pd.DataFrame:
    """One row a query: how many keys it sees, and entropy, largest weight, gradient of both."""
    import torch

    from attention_core.experiments.learn.scaling.divisors import entropy, jacobian_norm

    seen = (
        np.arange(1, len(original) + 1) if found.causal else np.full(len(original), len(original))
    )
    uniform = np.sqrt(seen - 1) / seen
    columns: dict[str, Any] = {
        "position": np.arange(len(original)),
        "query": found.labels,
        "keys": seen,
        "log keys": np.log(seen),
    }
    for name, values in (("original", original), ("changed", changed)):
        weights = torch.from_numpy(values)
        columns[f"{name}: entropy"] = entropy(weights).numpy()
        columns[f"{name}: largest"] = values.max(axis=-1)
        columns[f"{name}: at key"] = [found.labels[place] for place in values.argmax(axis=-1)]
        gradient = jacobian_norm(weights).numpy()
        # a single key gets all the weight whatever its score: there is no gradient to compare with
        columns[f"{name}: gradient"] = np.divide(
            gradient, uniform, out=np.full(len(gradient), np.nan), where=uniform > 0
        )
    return pd.DataFrame(columns)


def _summary(rows: pd.DataFrame, own: float, scale: float) -> pd.DataFrame:
    """Means over the rows that see at least two keys."""
    counted = rows[rows["keys"] > 1]
    return pd.DataFrame(
        [
            {
                "scale": f"{name}: × {size:.4g}",
                "entropy": _or_dash(counted[f"{name}: entropy"].mean()),
                "log keys": _or_dash(counted["log keys"].mean()),
                "largest weight": _or_dash(counted[f"{name}: largest"].mean()),
                "gradient, uniform = 1": _or_dash(counted[f"{name}: gradient"].mean()),
            }
            for name, size in (("original", own), ("changed", scale))
        ]
    )


def _or_dash(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:.3f}"
