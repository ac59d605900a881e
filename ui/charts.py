"""Chart descriptions: plain numbers in, a Vega-Lite dictionary out.

Dictionaries and not Altair objects where a chart is redrawn while something runs: checking an
Altair object against its schema costs the server more than ten times as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CACHED, UNCACHED = "with the cache", "without the cache"

# Okabe and Ito's blue and vermillion: readable by colour-blind people, on white and on dark.
_COLOURS = ["#0072B2", "#D55E00"]


def time_per_token(
    milliseconds: Mapping[str, Sequence[float]], *, n_steps: int, height: int = 300
) -> dict[str, Any]:
    """Time of every decode step, one line a run; the prefill is not among them.

    `milliseconds[run][i]` is the time of decode step `i + 1`. The x axis spans all `n_steps` from
    the start, so that the picture does not change its scale while it fills.
    """
    rows = [
        {"run": run, "step": step, "milliseconds": round(value, 3)}
        for run, values in milliseconds.items()
        for step, value in enumerate(values, start=1)
    ]
    return {
        "height": height,
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"size": 18}, "strokeWidth": 1.5},
        "encoding": {
            "x": {
                "field": "step",
                "type": "quantitative",
                "title": "decode step",
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
                "scale": {"domain": [CACHED, UNCACHED], "range": _COLOURS},
                "legend": {"orient": "top"},
            },
            "tooltip": [
                {"field": "run", "title": "run"},
                {"field": "step", "title": "decode step"},
                {"field": "milliseconds", "title": "milliseconds", "format": ".2f"},
            ],
        },
        "config": {"view": {"strokeWidth": 0}},
    }
