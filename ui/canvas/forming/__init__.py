"""The attention maps of all heads of a small model during training, with their scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ui.canvas.codes import Codes
from ui.canvas.component import Canvas
from ui.canvas.component import pack as pack_arrays

_canvas = Canvas("forming")


@dataclass(frozen=True)
class LayerScores:
    """The scores of a layer's heads, (H,), and the name of the score.

    read_at: the cells whose mean is the score: row and column of the first one, and the number of
    cells along the diagonal.
    """

    name: str
    scores: np.ndarray
    read_at: tuple[int, int, int]


def forming(
    codes: Codes,
    labels: Sequence[str],
    layers: Sequence[LayerScores],
    *,
    title: str,
    causal: bool,
    key: str,
) -> None:
    """Draw the maps of all heads, one row per layer. labels: the tokens' labels."""
    _canvas.draw(pack(codes, labels, layers, title=title, causal=causal), key=key)


def pack(
    codes: Codes, labels: Sequence[str], layers: Sequence[LayerScores], *, title: str, causal: bool
) -> bytes:
    """Encode the data for the browser: a header, then the deflated codes of all maps."""
    n_heads = len(layers[0].scores)
    header = {
        "layers": len(layers),
        "heads": n_heads,
        "labels": list(labels),
        "title": title,
        "says": "In each map, rows are query tokens and columns are key tokens. The score above a "
        "map is the mean of the cells between its orange lines.",
        "causal": causal,
        "levels": codes.levels,
        "largest": list(codes.largest),
        "scores": [float(score) for layer in layers for score in layer.scores],
        "best": [i * n_heads + int(layer.scores.argmax()) for i, layer in enumerate(layers)],
        "scoreNames": [layer.name for layer in layers],
        "wanted": [layer.read_at for layer in layers],
        "digest": hashlib.blake2b(codes.deflated, digest_size=6).hexdigest(),
    }
    return pack_arrays(header, codes.deflated)
