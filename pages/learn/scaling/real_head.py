"""A model's head on a text, with its own scale and with a different one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from serving import runs
from serving.runs import Run
from ui.text.formatting import format_number
from ui.widgets.head_choice import HeadChoice

FACTORS = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1.0,
           "2": 2.0, "4": 4.0, "8": 8.0, "16": 16.0}  # fmt: skip
KEPT, REMOVED, FACTOR = "as in the model", "removed", "times a factor"
SCALES = [KEPT, REMOVED, FACTOR]


@dataclass(frozen=True)
class RescaledHead:
    """A head's weights (T, T) with its own scale and with a different one."""

    labels: tuple[str, ...]
    causal: bool
    scales: tuple[float, float]
    original: np.ndarray
    changed: np.ndarray
    rows: pd.DataFrame
    summary: pd.DataFrame


def rescaled_head(choice: HeadChoice, text: str, method: str, factor: str) -> RescaledHead:
    """Run the head with its scale kept, removed or multiplied by a factor.

    Errors: as in `serving.runs.run`.
    """
    from pages.learn.scaling.experiment import weights_at_scale

    run = runs.run(choice.entry.spec.name, text)
    q = run.tensors.q[choice.layer, choice.head]
    k = run.tensors.k[choice.layer, run.kv_head(choice.head)]
    own = 1.0 / math.sqrt(q.shape[-1])
    scale = {KEPT: own, REMOVED: 1.0, FACTOR: own * FACTORS[factor]}[method]
    original, changed = (
        weights_at_scale(q, k, size, causal=run.causal).numpy() for size in (own, scale)
    )
    rows = _rows(run, original, changed)
    return RescaledHead(
        run.tokens.labels,
        run.causal,
        (own, scale),
        original,
        changed,
        rows,
        _summary(rows, own, scale),
    )


def _rows(run: Run, original: np.ndarray, changed: np.ndarray) -> pd.DataFrame:
    """One row per query: visible keys, entropy, largest weight and gradient."""
    import torch

    from pages.learn.scaling.experiment import entropy, jacobian_norm

    labels = run.tokens.labels
    n = len(original)
    n_keys = np.arange(1, n + 1) if run.causal else np.full(n, n)
    uniform = np.sqrt(n_keys - 1) / n_keys
    columns: dict[str, Any] = {
        "position": np.arange(len(original)),
        "query": labels,
        "keys": n_keys,
        "log keys": np.log(n_keys),
    }
    for name, values in (("original", original), ("changed", changed)):
        weights = torch.from_numpy(values)
        columns[f"{name}: entropy"] = entropy(weights).numpy()
        columns[f"{name}: largest"] = values.max(axis=-1)
        columns[f"{name}: at key"] = [labels[place] for place in values.argmax(axis=-1)]
        gradient = jacobian_norm(weights).numpy()
        # with a single key the weight is always 1, so there is no gradient
        columns[f"{name}: gradient"] = np.divide(
            gradient, uniform, out=np.full(len(gradient), np.nan), where=uniform > 0
        )
    return pd.DataFrame(columns)


def _summary(rows: pd.DataFrame, own: float, scale: float) -> pd.DataFrame:
    """Means over the rows that see at least two keys."""
    counts = rows[rows["keys"] > 1]
    return pd.DataFrame(
        [
            {
                "scale": f"{name}: × {format_number(size, '.4g')}",
                "entropy": _or_dash(counts[f"{name}: entropy"].mean()),
                "log keys": _or_dash(counts["log keys"].mean()),
                "largest weight": _or_dash(counts[f"{name}: largest"].mean()),
                "gradient, uniform = 1": _or_dash(counts[f"{name}: gradient"].mean()),
            }
            for name, size in (("original", own), ("changed", scale))
        ]
    )


def _or_dash(number: float) -> str:
    return "–" if math.isnan(number) else f"{number:.3f}"
