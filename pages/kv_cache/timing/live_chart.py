"""The steps of a measurement so far, repainted twice a second while it runs.

A Vega-Lite dictionary and not an Altair chart: each time the numbers are others, and checking an
Altair chart against its schema takes time from the very steps that are measured.
"""

from __future__ import annotations

from typing import Any

from pages.kv_cache.timing.charts import COLOURS, HEIGHT, legend
from pages.kv_cache.timing.measured import Recorder

MAX_LIVE_POINTS = 96  # of a contender while it runs: a chart must not cost what it shows


def live(recorder: Recorder, n_prompt: int, n_new: int) -> dict[str, Any]:
    """Milliseconds of the decode steps so far, the latest repeat of each; a part of the points."""
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
        # no reader is told of an empty picture
        "mark": {"type": "point", "filled": True, "size": 18, "opacity": 1, "aria": bool(rows)},
        "encoding": {
            "x": {
                "field": "tokens", "type": "quantitative",
                "title": "tokens so far, prompt included",
                "scale": {"domain": [n_prompt, n_prompt + n_new], "nice": False},
            },
            "y": {
                "field": "ms", "type": "quantitative", "title": "milliseconds a step",
                "scale": {"zero": True},
            },
            "color": {
                "field": "contender", "type": "nominal", "title": None,
                "scale": {"domain": list(names), "range": list(names.values())},
                "legend": legend(list(names)),
            },
        },
    }  # fmt: skip
