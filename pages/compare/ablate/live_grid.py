"""The grid of all heads, repainted while they are ranked, and drawn once more when that is over.

A Vega-Lite dictionary and not an Altair chart: four times a second the numbers are others, and
checking an Altair chart against its schema costs more than sending the dictionary.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ui.charts.style import VERMILLION

PICK = "pick"  # the selection of a cell of the grid


def grid(
    sizes: np.ndarray,
    seconds: np.ndarray,
    off: Collection[tuple[int, int]],
    measures: tuple[str, str],
    *,
    pick: bool,
) -> dict[str, Any]:
    """A cell a head, (layers, heads): the effect of switching it off alone; `off` is framed.

    Cells without a number are pale. The colour scale is a square root: most effects are
    small beside the largest. With `pick` a click selects a cell.
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
    if not rows:  # a scale without numbers, so that the first ones move nothing
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
        # a screen reader is told of no picture where there is none yet
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
    """The height of the grid in pixels."""
    return min(max(14 * n_layers, 220), 560) + 60
