"""Heads drawn as colored lines from queries (left) to keys (right), several heads at a time.

The values are sent as raw float32 bytes. Hovering or using the arrow keys shows a value from the
same bytes, so it's exactly the tensor's value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.canvas.component import Canvas
from ui.canvas.component import pack as pack_arrays

MAX_HEADS = 12  # the number of colors in ui/canvas/shared/colours.js
MAX_TOKENS = 256


canvas = Canvas("lines")


def lines(
    weights: np.ndarray,
    names: Sequence[str],
    labels: Sequence[str],
    *,
    title: str,
    causal: bool,
    key: str,
    value: str = "weight",
    largest: float | None = None,
) -> None:
    """Draw weights (N, T, S) of N heads `names`, T queries and S keys with the given labels.

    The queries are the last T of the S tokens. With `causal`, pairs with a key after the query are
    masked. NaN marks a hidden pair, which has no line and no value. value: the name of a value
    ("contribution"). largest: the value drawn with full width and opacity; by default, the maximum.
    Raises: ValueError if the sizes don't match or exceed `MAX_HEADS` or `MAX_TOKENS`.
    """
    data = pack(weights, names, labels, title=title, causal=causal, value=value, largest=largest)
    canvas.draw(data, key=key)


def pack(
    weights: np.ndarray,
    names: Sequence[str],
    labels: Sequence[str],
    *,
    title: str,
    causal: bool,
    value: str = "weight",
    largest: float | None = None,
) -> bytes:
    """Encode the data for the browser: a header, then float32 values head by head."""
    if weights.ndim != 3:
        raise ValueError(f"weights must be (N, T, S), got {weights.ndim} dimensions")
    n_heads, n_queries, n_keys = weights.shape
    if n_heads != len(names) or len(set(names)) != len(names):
        raise ValueError(f"{n_heads} heads need {n_heads} different names, got {list(names)}")
    if n_keys != len(labels) or n_queries > n_keys:
        raise ValueError(f"{n_queries} queries, {n_keys} keys and {len(labels)} labels don't match")
    if n_heads > MAX_HEADS or n_keys > MAX_TOKENS:
        raise ValueError(
            f"{n_heads} heads of {n_keys} tokens are too many to draw as lines; the limits are "
            f"{MAX_HEADS} and {MAX_TOKENS}"
        )
    header = {
        "names": list(names),
        "queries": n_queries,
        "keys": n_keys,
        "labels": list(labels),
        "title": title,
        "says": "Queries are on the left and keys are on the right. Each color is a head.",
        "causal": causal,
        "value": value,
        "largest": _largest(weights) if largest is None else float(largest),
    }
    return pack_arrays(header, weights.astype("<f4"))


def _largest(weights: np.ndarray) -> float:
    """The largest value that isn't hidden, or 1 if no value is above zero."""
    largest = float(np.max(weights, initial=0.0, where=~np.isnan(weights)))
    return largest if largest > 0 else 1.0
