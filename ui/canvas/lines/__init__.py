"""Heads as lines from queries (left) to keys (right), several heads over one another in colours.

The values travel as raw float32 bytes, and what is read by pointing or with the arrow keys comes
out of the same bytes: it is what the tensor holds, to the last digit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from ui.canvas import shared

_FOLDER = Path(__file__).parent

MAX_HEADS = 12  # as many as there are colours, see ui/canvas/shared/colours.js
MAX_TOKENS = 256


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


HTML, CSS = _asset("lines.html"), _asset("lines.css")
JS = shared.script("colours", "data", "save") + _asset("lines.js")

_component = st.components.v2.component("attention_lines", html=HTML, css=CSS, js=JS)


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
    _component(data=data, key=key, height="content")


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
    """Header length (4 bytes, little endian), JSON header, then float32 values head by head.

    The header is padded with blanks so that the values start at a multiple of four bytes.
    """
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
    header = json.dumps(
        {
            "names": list(names),
            "queries": n_queries,
            "keys": n_keys,
            "labels": list(labels),
            "title": title,
            "causal": causal,
            "value": value,
            "largest": _largest(weights) if largest is None else float(largest),
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    values = np.ascontiguousarray(weights, dtype="<f4").tobytes()
    return len(header).to_bytes(4, "little") + header + values


def _largest(weights: np.ndarray) -> float:
    """The largest value that is not left out; 1 where no pair has a value above zero."""
    largest = float(np.max(weights, initial=0.0, where=~np.isnan(weights)))
    return largest if largest > 0 else 1.0
