"""The charts of the page "Block": plain numbers in, a Vega-Lite dictionary out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pages.learn.block.prediction import LensTable
from pages.learn.block.stream import Run
from ui.charts.bars import bars
from ui.charts.style import BLUE, GREEN, VERMILLION, config


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


def stream_chart(done: Run, position: int, *, ink: str) -> dict[str, Any]:
    """Norms by layers passed: the stream and what is added to it, mean and range, and one token."""
    series = {
        "stream": done.norms,
        "attention adds": done.attention,
        "feed-forward adds": done.feed_forward,
    }
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
