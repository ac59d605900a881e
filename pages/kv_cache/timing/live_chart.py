"""A live chart of a measurement's steps, redrawn twice a second.

It's a Vega-Lite dictionary, not an Altair chart: the numbers change at every redraw, and validating
an Altair chart would slow down the steps being measured.
"""

from __future__ import annotations

from typing import Any

from pages.kv_cache.timing.charts import COLOURS, HEIGHT, legend
from pages.kv_cache.timing.timing_run import Recorder

MAX_LIVE_POINTS = 96  # per contender, so that drawing doesn't slow down the measurement


def live_steps(recorder: Recorder, n_prompt: int, n_new: int) -> dict[str, Any]:
    """Chart the milliseconds of each contender's latest decode steps, thinned out."""
    rows = []
    for name, repeats in recorder.steps.items():
        begun = [repeat for repeat in repeats if len(repeat) > 1]
        if not begun:
            continue
        steps = begun[-1]
        every = -(-len(steps) // MAX_LIVE_POINTS)
        rows += [
            {
                "contender": name,
                "tokens": step.n_keys,
                "ms": round(step.seconds * 1e3, 3),
            }
            for step in steps[1::every]
        ]
    names = {name: COLOURS[name] for name in recorder.steps}
    return {
        "height": HEIGHT,
        "data": {"values": rows},
        # screen readers skip the empty chart
        "mark": {"type": "point", "filled": True, "size": 18, "opacity": 1, "aria": bool(rows)},
        "encoding": {
            "x": {
                "field": "tokens", "type": "quantitative",
                "title": "tokens so far, prompt included",
                "scale": {"domain": [n_prompt, n_prompt + n_new], "nice": False},
            },
            "y": {
                "field": "ms", "type": "quantitative", "title": "milliseconds per step",
                "scale": {"zero": True},
            },
            "color": {
                "field": "contender", "type": "nominal", "title": None,
                "scale": {"domain": list(names), "range": list(names.values())},
                "legend": legend(list(names)),
            },
        },
    }  # fmt: skip
