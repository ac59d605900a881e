"""The heatmap of one head, drawn in the browser on a canvas from exact float32 values.

The weights travel as raw bytes, and hovering, tapping or moving with the arrow keys reads the
value out of the same bytes: what is read is what the tensor holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st

_FOLDER = Path(__file__).parent


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


_component = st.components.v2.component(
    "attention_heatmap", html=_asset("heatmap.html"), css=_asset("heatmap.css"),
    js=_asset("heatmap.js"),
)  # fmt: skip


@dataclass(frozen=True)
class ColourScale:
    """Colours from 0 to `largest`: by the weight, or by its square root, which shows small ones."""

    largest: float
    square_root: bool = False


def heatmap(
    weights: np.ndarray,
    labels: Sequence[str],
    *,
    title: str,
    causal: bool,
    scale: ColourScale,
    key: str,
) -> None:
    """Draw weights (T, S), queries as rows and keys as columns.

    With `causal`, cells above the diagonal are drawn as "may not look", not as a weight of zero.
    """
    _component(
        data=pack(weights, labels, title=title, causal=causal, scale=scale),
        key=key,
        height="content",
    )


def pack(
    weights: np.ndarray, labels: Sequence[str], *, title: str, causal: bool, scale: ColourScale
) -> bytes:
    """Header length (4 bytes, little endian), JSON header, then float32 values row by row.

    The header is padded with blanks so that the values start at a multiple of four bytes.
    """
    header = json.dumps(
        {
            "rows": weights.shape[0],
            "columns": weights.shape[1],
            "labels": list(labels),
            "title": title,
            "causal": causal,
            "largest": scale.largest,
            "squareRoot": scale.square_root,
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    values = np.ascontiguousarray(weights, dtype="<f4").tobytes()
    return len(header).to_bytes(4, "little") + header + values
