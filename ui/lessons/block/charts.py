"""The charts of the page "Block": plain numbers in, a Vega-Lite dictionary out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.charts import BLUE, GREEN, VERMILLION, config
from ui.lessons.block.prediction import LensTable
from ui.lessons.block.stream import Run


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


def norms(labels: Sequence[str], values: np.ndarray, *, ink: str) -> dict[str, Any]:
    """A bar a token, upright when there are many."""
    return bars(
        labels,
        values,
        title="norm of the token's vector",
        ink=ink,
        horizontal=len(labels) <= 24,
        height=370,
    )


def _label_expression(labels: list[str]) -> str:
    """A Vega expression that turns a place into its label; the labels are JSON strings in it."""
    return f"{json.dumps(labels)}[datum.value]"


def stream_chart(done: Run, position: int, *, ink: str) -> dict[str, Any]:
    """Norms by layers passed: the stream and what is added to it, mean and range, and one token."""
    series = {"stream": done.norms, "attention adds": done.attention,
              "feed-forward adds": done.feed_forward}  # fmt: skip
    rows = []
    for name, norms in series.items():
        first = len(done.norms) - len(norms)  # what a layer adds stands where it ends up
        rows += [
            {
                "series": name,
                "layers": first + layer,
                "mean": round(float(of_tokens.mean()), 4),
                "low": float(of_tokens.min()),
                "high": float(of_tokens.max()),
                "token": round(float(of_tokens[position]), 4),
            }
            for layer, of_tokens in enumerate(norms)
        ]
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(series), "range": [BLUE, VERMILLION, GREEN]},
        "legend": {"orient": "top", "columns": 2, "symbolOpacity": 1, "symbolType": "square"},
    }
    log = {"type": "log", "nice": True}

    def norm(field: str) -> dict[str, Any]:
        return {
            "field": field,
            "type": "quantitative",
            "scale": log,
            "title": "norm (log scale)",
            "axis": {"tickCount": 5, "format": "~s"},
        }

    return {
        "height": 340,
        "data": {"values": rows},
        "encoding": {
            "x": {
                "field": "layers",
                "type": "quantitative",
                "title": "layers passed (0: the embeddings)",
                "scale": {"domain": [0, len(done.norms) - 1], "nice": False},
                "axis": {"tickMinStep": 1},
            },
            "color": colour,
            "tooltip": [
                {"field": "series", "title": "of"},
                {"field": "layers", "title": "layers passed"},
                {"field": "mean", "title": "mean"},
                {"field": "token", "title": "this token"},
            ],
        },
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.15},
                "encoding": {"y": norm("low"), "y2": {"field": "high"}},
            },
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"y": norm("mean")}},
            {
                "mark": {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.5, "point": True},
                "encoding": {"y": norm("token")},
            },
        ],
        "config": config(ink),
    }


def lens_chart(found: LensTable, *, ink: str) -> dict[str, Any]:
    """The probability of the final token by layers passed."""
    rows = [
        {"layers": layer, "probability": float(probability)}
        for layer, probability in enumerate(found.probability)
    ]
    return {
        "height": 240,
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "color": BLUE},
        "encoding": {
            "x": {
                "field": "layers",
                "type": "quantitative",
                "title": "layers passed (0: the embeddings)",
                "scale": {"domain": [0, len(rows) - 1], "nice": False},
                "axis": {"tickMinStep": 1},
            },
            "y": {
                "field": "probability",
                "type": "quantitative",
                "title": "probability of the final token",
                "scale": {"domain": [0, 1]},
            },
            "tooltip": [
                {"field": "layers", "title": "layers passed"},
                {"field": "probability", "title": "probability", "format": ".4f"},
            ],
        },
        "config": config(ink),
    }
