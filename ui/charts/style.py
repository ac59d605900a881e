"""Chart descriptions: plain numbers in, a Vega-Lite dictionary out.

Dictionaries and not Altair objects where a chart is redrawn while something runs: checking an
Altair object against its schema costs the server more than ten times as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

CACHED, UNCACHED = "with the cache", "without the cache"

# Okabe and Ito: readable by colour-blind people, on white and on dark.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
SERIES = [VERMILLION, BLUE, GREEN, PURPLE, ORANGE]


def time_per_token(
    prefill: Mapping[str, float],
    decode: Mapping[str, Sequence[float]],
    *,
    n_steps: int,
    ink: str,
    height: int = 340,
) -> dict[str, Any]:
    """Milliseconds of every step: the decode steps of a run as a line, its prefill as a diamond.

    `prefill[run]` is the time of step 0, `decode[run][i]` that of step `i + 1`. The x axis spans
    all `n_steps` from the start, so that the picture does not change its scale while it fills.
    `ink` is the colour of its text.
    """
    rows = [
        {"run": run, "kind": "prefill", "step": 0, "milliseconds": round(value, 3)}
        for run, value in prefill.items()
    ] + [
        {"run": run, "kind": "decode", "step": step, "milliseconds": round(value, 3)}
        for run, values in decode.items()
        for step, value in enumerate(values, start=1)
    ]
    decode_only = {"filter": "datum.kind === 'decode'"}
    return {
        "height": height,
        "data": {"values": rows},
        "encoding": {
            "x": {
                "field": "step",
                "type": "quantitative",
                "title": "step (0, the diamond, is the prefill)",
                "scale": {"domain": [0, max(n_steps, 1)], "nice": False},
                "axis": {"tickMinStep": 1},
            },
            "y": {
                "field": "milliseconds",
                "type": "quantitative",
                "title": "milliseconds for the step",
                "scale": {"zero": True},
            },
            "color": {
                "field": "run",
                "type": "nominal",
                "title": None,
                "scale": {"domain": [CACHED, UNCACHED], "range": [BLUE, VERMILLION]},
                "legend": {"orient": "top"},
            },
            "tooltip": [
                {"field": "run", "title": "run"},
                {"field": "kind", "title": "kind"},
                {"field": "step", "title": "step"},
                {"field": "milliseconds", "title": "milliseconds", "format": ".2f"},
            ],
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.5}, "transform": [decode_only]},
            {
                "mark": {"type": "point", "filled": True, "opacity": 1},
                "encoding": {
                    "shape": {
                        "field": "kind",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": ["decode", "prefill"], "range": ["circle", "diamond"]},
                        "legend": None,
                    },
                    "size": {
                        "condition": {"test": "datum.kind === 'prefill'", "value": 140},
                        "value": 18,
                    },
                },
            },
        ],
        "config": config(ink),
    }


def config(ink: str, **legend: Any) -> dict[str, Any]:
    """What all charts share: text in the colour `ink`, no frame; `legend` adds to the legend."""
    return {
        "view": {"strokeWidth": 0},
        "axis": {"labelColor": ink, "titleColor": ink},
        "legend": {"labelColor": ink, "titleColor": ink, **legend},
    }


def decades(values: Sequence[float]) -> dict[str, Any]:
    """`scale` and `axis` of a logarithmic axis over whole powers of ten, with at most 8 marks.

    The values must be positive.
    """
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    every = math.ceil((high - low) / 7)
    return {
        "scale": {"type": "log", "domain": [10.0**low, 10.0**high], "nice": False},
        "axis": {
            "values": [10.0**power for power in range(high, low - 1, -every)],
            "format": "~g",
        },
    }
