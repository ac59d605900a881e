"""The grid of all heads, redrawn while a ranking runs.

It's a Vega-Lite dictionary rather than an Altair chart because it changes four times a second, and
validating an Altair chart takes longer than sending the dictionary.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ui.charts.style import VERMILLION

PICK = "pick"  # the grid's selection parameter


def grid(
    sizes: np.ndarray,
    seconds: np.ndarray,
    off: Collection[tuple[int, int]],
    measures: tuple[str, str],
    *,
    pick: bool,
) -> dict[str, Any]:
    """One cell per head, colored by the effect of switching off only that head.

    sizes, seconds: (layers, heads), NaN for heads that aren't measured yet, whose cells are pale.
    off: heads that get a frame. pick: whether a click selects a cell. The color scale is a square
    root because most effects are small compared with the largest.
    """
    n_layers, n_heads = sizes.shape
    rows: list[dict[str, Any]] = [
        {
            "layer": layer,
            "head": head,
            "size": float(sizes[layer, head]),
            "second": float(seconds[layer, head]),
        }
        for layer in range(n_layers)
        for head in range(n_heads)
        if not np.isnan(sizes[layer, head])
    ]
    largest = max((row["size"] for row in rows), default=1.0) or 1.0
    legend: dict[str, Any] = {"orient": "top", "gradientLength": 220, "tickCount": 4}
    if not rows:  # keep an empty legend so that the first values don't shift the layout
        legend["labelExpr"] = "''"
    framed = [{"layer": layer, "head": head} for layer, head in sorted(off)]
    x = {
        "field": "head", "type": "ordinal", "title": "head", "axis": {"labelAngle": 0},
        "scale": {"domain": list(range(n_heads)), "padding": 0.06},
    }  # fmt: skip
    y = {
        "field": "layer", "type": "ordinal", "title": "layer", "axis": {"labelOverlap": True},
        "scale": {"domain": list(range(n_layers)), "padding": 0.06},
    }  # fmt: skip
    cells: dict[str, Any] = {
        "data": {"values": rows},
        # hide the layer from screen readers while it's empty
        "mark": {"type": "rect", "cursor": "pointer" if pick else "default", "aria": bool(rows)},
        "encoding": {
            "x": x,
            "y": y,
            "color": {
                "field": "size",
                "type": "quantitative",
                "title": measures[0],
                "scale": {"type": "sqrt", "domain": [0, largest]},
                "legend": legend,
            },
            "tooltip": [
                {"field": "layer", "title": "layer"},
                {"field": "head", "title": "head"},
                {"field": "size", "title": measures[0], "format": ".5f"},
                {"field": "second", "title": measures[1], "format": "+.5f"},
            ],
        },
    }
    waiting = {
        "data": {"sequence": {"start": 0, "stop": sizes.size, "as": "cell"}},
        "transform": [
            {"calculate": f"floor(datum.cell / {n_heads})", "as": "layer"},
            {"calculate": f"datum.cell % {n_heads}", "as": "head"},
        ],
        "mark": {"type": "rect", "color": "#88888833", "aria": False},
        "encoding": {"x": x, "y": y},
    }
    if pick:
        cells["params"] = [{"name": PICK, "select": {"type": "point", "fields": ["layer", "head"]}}]
    frames = {
        "data": {"values": framed},
        "mark": {
            "type": "rect",
            "filled": False,
            "stroke": VERMILLION,
            "strokeWidth": 3,
            "aria": False,
        },
        "encoding": {"x": x, "y": y},
    }
    return {
        "height": grid_height(n_layers),
        "layer": [waiting, cells, frames],
    }


def grid_height(n_layers: int) -> int:
    """Height of the grid in pixels."""
    return min(max(14 * n_layers, 220), 560) + 60
