"""A bar chart with labels in the order in which they are given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.charts.style import BLUE, config


def bars(
    labels: Sequence[str],
    values: Sequence[float] | np.ndarray,
    *,
    title: str,
    ink: str,
    horizontal: bool = True,
    largest: float | None = None,
    height: int = 260,
) -> dict[str, Any]:
    """Bars with their labels, in the given order; labels may be equal to one another."""
    rows = [
        {"place": place, "label": label, "value": float(value)}
        for place, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    names = {
        "field": "place",
        "type": "ordinal",
        "title": None,
        "axis": {
            "labelExpr": _label_expression(list(labels)),
            "labelLimit": 220,
            "labelAngle": 0 if horizontal else -60,
            "labelOverlap": not horizontal,
        },
    }
    scale = {"zero": True} if largest is None else {"domain": [0, largest]}
    numbers = {"field": "value", "type": "quantitative", "title": title, "scale": scale}
    return {
        "height": height,
        "data": {"values": rows},
        "mark": {"type": "bar", "color": BLUE},
        "encoding": {
            "x": numbers if horizontal else names,
            "y": names if horizontal else numbers,
            "tooltip": [
                {"field": "label", "title": "of"},
                {"field": "value", "title": title, "format": ",.4~g" if largest else ",.6~g"},
            ],
        },
        "config": config(ink),
    }


def _label_expression(labels: list[str]) -> str:
    """A Vega expression that turns a place into its label; the labels are JSON strings in it."""
    return f"{json.dumps(labels)}[datum.value]"
