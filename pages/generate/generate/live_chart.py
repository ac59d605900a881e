"""A live chart of a job's step times, redrawn four times a second.

It's a Vega-Lite dictionary, not an Altair chart: the numbers change at every redraw, and validating
an Altair chart costs the server more than ten times as much as sending the dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ui.charts.style import BLUE, CACHED, UNCACHED, VERMILLION


def time_per_token(
    prefill: Mapping[str, float],
    decode: Mapping[str, Sequence[float]],
    *,
    n_steps: int,
    height: int = 340,
) -> dict[str, Any]:
    """Chart the milliseconds per step: decode steps as lines, prefill as a diamond.

    `prefill[run]` is the time of step 1 and `decode[run][i]` that of step `i + 2`. The x axis spans
    `n_steps` decode steps from the start, so its scale doesn't change while the chart fills.
    """
    rows = [
        {"run": run, "kind": "prefill", "step": 1, "milliseconds": round(value, 3)}
        for run, value in prefill.items()
    ] + [
        {"run": run, "kind": "decode", "step": step, "milliseconds": round(value, 3)}
        for run, values in decode.items()
        for step, value in enumerate(values, start=2)
    ]
    decode_only = {"filter": "datum.kind === 'decode'"}
    return {
        "height": height,
        "data": {"values": rows},
        "encoding": {
            "x": {
                "field": "step",
                "type": "quantitative",
                "title": "step (the diamond at step 1 is the prefill)",
                "scale": {"domain": [0.5, n_steps + 1.5], "nice": False},
                "axis": {"tickMinStep": 1},
            },
            "y": {
                "field": "milliseconds",
                "type": "quantitative",
                "title": "milliseconds per step",
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
    }
