"""The charts of the page "Scaling": plain numbers in, a Vega-Lite dictionary out."""

from __future__ import annotations

import math
from typing import Any

from pages.learn.scaling.experiment import (
    D_KS,
    ENTROPY,
    GRADIENT,
    LARGEST,
    N_TOKENS,
    measured,
    sweep,
)
from pages.learn.scaling.softmax import Softmaxes
from ui.charts.style import SERIES, config, decades

# A dash for each colour where lines lie on each other.
_DASHES = [[1, 0], [1, 0], [7, 4], [2, 4]]


def softmax_chart(result: Softmaxes, ink: str) -> dict[str, Any]:
    """Bars: one group a logit, one bar a softmax."""
    rows = [
        {"logit": f"{place}: {logit:g}", "scores": name, "weight": float(values[place])}
        for name, values in result.columns.items()
        for place, logit in enumerate(result.logits)
    ]
    names = list(result.columns)
    return {
        "height": 340,
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "logit",
                "type": "nominal",
                "sort": None,
                "title": "place: logit",
                "axis": {"labelAngle": 0 if len(result.logits) < 6 else -60},
            },
            "xOffset": {"field": "scores", "sort": names},
            "y": {
                "field": "weight",
                "type": "quantitative",
                "title": "weight",
                "scale": {"domain": [0, 1]},
            },
            "color": _colour("scores", names, "square"),
            "tooltip": [
                {"field": "scores"},
                {"field": "logit"},
                {"field": "weight", "format": ".6f"},
            ],
        },
        "config": config(ink),
    }


def variance_chart(seed: int, d_k: int, ink: str) -> dict[str, Any]:
    """Measured variances as points with their spread, theory as lines, both axes logarithmic."""
    rows = [
        {
            "d_k": found.d_k,
            "divided by": name,
            "measured": found.variance,
            "low": max(found.variance - found.spread, found.variance / 10),
            "high": found.variance + found.spread,
            "theory": found.theory,
        }
        for name, all_found in sweep(seed).items()
        for found in all_found
    ]
    y = {"type": "quantitative", "scale": {"type": "log"}, "title": "variance of the scores"}
    axis = {"format": "~g", "values": [1e-9, 1e-6, 1e-3, 1, 1e3]}
    layers: list[dict[str, Any]] = [
        {"mark": "line", "encoding": {"y": {**y, "field": "theory", "axis": axis}}},
        {"mark": "rule", "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"y": {**y, "field": "measured"}},
        },
    ]
    tooltip = [
        {"field": "divided by"},
        {"field": "d_k"},
        *({"field": name, "format": ".4~g"} for name in ("measured", "theory")),
    ]
    return _over_d_k(rows, layers, tooltip, d_k, ink)


def measure_chart(seed: int, d_k: int, measure: str, ink: str) -> dict[str, Any]:
    """One measure of the softmax's rows over d_k, a line for each divisor."""
    rows: list[dict[str, Any]] = [
        {"d_k": found.d_k, "divided by": name, "value": measured(found, measure)}
        for name, all_found in sweep(seed).items()
        for found in all_found
    ]
    limits: dict[str, dict[str, Any]] = {
        ENTROPY: {"scale": {"domain": [0, math.log(N_TOKENS)], "nice": False}},
        LARGEST: {"scale": {"domain": [0, 1]}},
        GRADIENT: {"scale": {"domain": [0, 1.5]}},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": {
            ENTROPY: f"entropy in nats (log {N_TOKENS} is the top)",
            LARGEST: "largest weight",
        }.get(measure, "gradient, × uniform row"),
        **(limits.get(measure) or decades([row["value"] for row in rows])),
    }
    layers = [
        {
            "mark": {"type": "line", "point": {"filled": True, "size": 40}},
            "encoding": {"y": y, "strokeDash": _dash()},
        }
    ]
    tooltip = [
        {"field": "divided by"},
        {"field": "d_k"},
        {"field": "value", "title": measure, "format": ".4~g"},
    ]
    return _over_d_k(rows, layers, tooltip, d_k, ink)


def _over_d_k(
    rows: list[dict[str, Any]],
    layers: list[dict[str, Any]],
    tooltip: list[dict[str, str]],
    d_k: int,
    ink: str,
) -> dict[str, Any]:
    """Layers over a logarithmic d_k axis, the chosen d_k marked by a line across."""
    x = {
        "field": "d_k",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [D_KS[0], D_KS[-1]]},
        "axis": {"values": [1, 4, 16, 64, 256, 1024], "format": "d"},
        "title": "d_k, the size of a query and a key",
    }
    colour = _colour("divided by", list(_divisors()))
    marked = {
        "data": {"values": [{"d_k": d_k}]},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": ink, "size": 1.5},
        "encoding": {"x": x},
    }
    drawn = [
        {**layer, "encoding": {"x": x, "color": colour, "tooltip": tooltip, **layer["encoding"]}}
        for layer in layers
    ]
    return {
        "height": 320,
        "data": {"values": rows},
        "layer": [marked, *drawn],
        "config": config(ink),
    }


def _divisors() -> list[str]:
    from attention_core.experiments.learn.scaling.divisors import DIVISORS

    return list(DIVISORS)


def _colour(field: str, names: list[str], symbol: str = "stroke") -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": field,
        "scale": {"domain": names, "range": SERIES[: len(names)]},
        "legend": _legend(symbol),
    }


def _dash() -> dict[str, Any]:
    return {
        "field": "divided by",
        "type": "nominal",
        "title": "divided by",
        "scale": {"domain": _divisors(), "range": _DASHES},
        "legend": _legend("stroke"),
    }


def _legend(symbol: str) -> dict[str, Any]:
    # the same for colours and dashes, so that both become one legend
    return {"orient": "top", "columns": 4, "symbolType": symbol, "symbolStrokeWidth": 3}
