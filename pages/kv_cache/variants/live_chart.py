"""A chart of decode-step times, drawn before, during and after the measurement.

It's a Vega-Lite dictionary, not an Altair chart, because validating an Altair chart would slow
down the steps being measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.kv_cache.variants.charts import ROW
from ui.charts.style import BLUE, INK, MARKS, VERMILLION


def speeds(
    counts: Mapping[str, float], ratios: Mapping[str, tuple[float, float, float]]
) -> dict[str, Any]:
    """Chart operations and times of decode steps relative to MHA.

    counts: relative operations of all forms, so that the chart keeps its size. ratios: median and
    first and third quartile of the times; screen readers skip them while they're empty.
    """
    forms = list(counts)
    rows: list[dict[str, Any]] = [
        {"form": name, "ratio": middle, "low": low, "high": high}
        for name, (middle, low, high) in ratios.items()
    ]
    values = [*counts.values(), *(row[end] for row in rows for end in ("low", "high"))]
    low, high = min(0.5, *values) / 1.1, max(2.0, *values) * 1.1
    y = {
        "field": "form", "type": "nominal", "sort": forms, "title": "form of attention",
        "scale": {"type": "band", "domain": forms},
        "axis": {"labelLimit": 160, "labelOverlap": False, "labelFlush": False},
    }  # fmt: skip
    marks = [m for m in (0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50) if low < m < high]
    x = {
        "type": "quantitative", "title": "decode step relative to MHA (logarithmic)",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": marks, "labelExpr": MARKS},
    }  # fmt: skip
    tooltip = [
        {"field": "form"},
        *({"field": name, "format": ".3f"} for name in ("ratio", "low", "high")),
    ]
    return {
        "height": ROW * len(forms) + 40,
        "data": {"values": rows},
        "layer": [
            {
                "data": {"values": [{"one": 1.0}]},
                "mark": {"type": "rule", "color": INK.to_dict(), "strokeDash": [4, 4]},
                "encoding": {"x": {"field": "one", **x}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 4, "color": BLUE, "opacity": 0.55,
                         "aria": bool(rows)},
                "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"},
                             "tooltip": tooltip},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 110, "color": BLUE,
                         "opacity": 1, "aria": bool(rows)},
                "encoding": {"y": y, "x": {"field": "ratio", **x}, "tooltip": tooltip},
            },
            {
                "data": {"values": [{"form": n, "operations": c} for n, c in counts.items()]},
                "mark": {"type": "point", "shape": "diamond", "size": 90, "color": VERMILLION,
                         "strokeWidth": 2, "opacity": 1},
                "encoding": {"y": y, "x": {"field": "operations", **x},
                             "tooltip": [{"field": "form"},
                                         {"field": "operations", "format": ".3f"}]},
            },
        ],
    }  # fmt: skip
