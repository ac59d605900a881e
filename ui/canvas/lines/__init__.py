"""Heads as lines from queries (left) to keys (right), several heads over one another in colours.

The values travel as raw float32 bytes, and what is read by pointing or with the arrow keys comes
out of the same bytes: it is what the tensor holds, to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.canvas.component import Canvas
from ui.canvas.component import pack as pack_arrays

MAX_HEADS = 12  # as many as there are colours, see ui/canvas/shared/colours.js
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
    """Draw weights (N, T, S): N heads called `names`, T queries, S keys called `labels`.

    The queries are the last T of the S tokens. With `causal`, pairs in which the query would look
    ahead are masked. NaN is a pair that was left out: no line, and no number when it is read.
    value: what the numbers are, in one word ("contribution"). largest: the value drawn with full
    width and opacity; without it, the largest there is.
    Raises: ValueError when the sizes do not fit together or exceed `MAX_HEADS` or `MAX_TOKENS`.
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
    """What the browser receives: a header, then float32 values head by head."""
    if weights.ndim != 3:
        raise ValueError(f"weights are (N, T, S), got {weights.ndim} dimensions")
    n_heads, n_queries, n_keys = weights.shape
    if n_heads != len(names) or len(set(names)) != len(names):
        raise ValueError(f"{n_heads} heads need as many different names, got {list(names)}")
    if n_keys != len(labels) or n_queries > n_keys:
        raise ValueError(f"{n_queries} queries, {n_keys} keys and {len(labels)} labels do not fit")
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
        "says": "Left: the token that looks. Right: the token looked at. A colour is a head.",
        "causal": causal,
        "value": value,
        "largest": _largest(weights) if largest is None else float(largest),
    }
    return pack_arrays(header, weights.astype("<f4"))


def _largest(weights: np.ndarray) -> float:
    """The largest value that is not left out; 1 where no pair has a value above zero."""
    largest = float(np.max(weights, initial=0.0, where=~np.isnan(weights)))
    return largest if largest > 0 else 1.0
