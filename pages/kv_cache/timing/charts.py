"""The charts of the page "Timing": seconds in, Vega-Lite dictionaries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pages.kv_cache.timing.measured import Recorder, Run
from pages.kv_cache.timing.subjects import (
    CONTENDERS,
    CORE_CACHED,
    CORE_UNCACHED,
    THEIRS_CACHED,
    THEIRS_UNCACHED,
)
from ui.charts.style import BLUE, GREEN, ORANGE, VERMILLION, config, decades

HEIGHT = 360
MAX_LIVE_POINTS = 96  # of a contender while it runs: a chart must not cost what it shows
_FIT_POINTS = 33
_COLOURS = {
    CORE_CACHED: BLUE,
    CORE_UNCACHED: VERMILLION,
    THEIRS_CACHED: GREEN,
    THEIRS_UNCACHED: ORANGE,
}
_SHAPES = {
    CORE_CACHED: "circle",
    CORE_UNCACHED: "triangle-up",
    THEIRS_CACHED: "square",
    THEIRS_UNCACHED: "triangle-down",
}


def per_token(runs: Mapping[str, Run], *, logarithmic: bool, ink: str) -> dict[str, Any]:
    """Milliseconds of each decode step against the tokens so far, and the fitted lines.

    `runs` by their labels: the points of the first are filled, those of a second are not.
    """
    points: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for label, run in runs.items():
        for name, series in run.series.items():
            points += [
                {"run": label, "contender": name, "tokens": n, "ms": round(ms, 4)}
                for n, ms in zip(
                    series.n_keys[1:].tolist(), (series.medians[1:] * 1e3).tolist(), strict=True
                )
            ]
            # a fitted parabola may dip below zero, which a logarithmic axis has not
            lines += [
                {"run": label, "contender": name, "tokens": round(n, 1), "ms": round(ms, 4)}
                for n in np.linspace(series.n_keys[1], series.n_keys[-1], _FIT_POINTS).tolist()
                if (ms := series.fit.at(n) * 1e3) > 0
            ]
    y = [one["ms"] for one in points]
    return {
        "height": HEIGHT,
        "encoding": _encoding(runs, "tokens", "tokens so far, prompt included") | {
            "y": _milliseconds(y, logarithmic),
        },
        "layer": [
            {
                "data": {"values": points},
                "mark": {"type": "point", "size": 16, "strokeWidth": 1},
                "encoding": {
                    "shape": _shape(runs),
                    "fill": {
                        "condition": {"test": f"datum.run === '{_first(runs)}'",
                                      **_colour(runs, legend=False)},
                        "value": "transparent",
                    },
                },
            },
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"strokeDash": _dash(runs)},
            },
        ],
        "config": config(ink),
    }  # fmt: skip


def cumulated(runs: Mapping[str, Run], *, ink: str) -> dict[str, Any]:
    """Seconds of the first 1, 2, ... new tokens together, both axes logarithmic."""
    rows: list[dict[str, Any]] = []
    for label, run in runs.items():
        for name, series in run.series.items():
            seconds = np.median(series.cumulated, axis=0)
            rows += [
                {"run": label, "contender": name, "new": n, "s": float(f"{seconds[n - 1]:.5g}")}
                for n in _thinned(len(seconds))
            ]
    most = max(row["new"] for row in rows)
    scale = decades([row["s"] for row in rows])
    encoding = _encoding(runs, "new", "new tokens, logarithmic")
    encoding["x"] |= {
        "scale": {"type": "log", "domain": [1, most], "nice": False},
        "axis": {
            "values": [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= most],
            "format": "d",
        },
    }
    y = {"field": "s", "type": "quantitative", "title": "seconds in total, logarithmic", **scale}
    encoding["tooltip"][-1] = {"field": "s", "title": "seconds", "format": ",.4~g"}
    return {
        "height": HEIGHT,
        "data": {"values": rows},
        "encoding": encoding | {"y": y, "strokeDash": _dash(runs)},
        "mark": {"type": "line", "strokeWidth": 2},
        "config": config(ink),
    }


def live(recorder: Recorder, n_prompt: int, n_new: int, *, ink: str) -> dict[str, Any]:
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
    names = {name: _COLOURS[name] for name in recorder.steps}
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
            "y": _milliseconds([1.0], False),
            "color": {
                "field": "contender", "type": "nominal", "title": None,
                "scale": {"domain": list(names), "range": list(names.values())},
                "legend": _legend(list(names)),
            },
        },
        "config": config(ink),
    }  # fmt: skip


def _encoding(runs: Mapping[str, Run], field: str, title: str) -> dict[str, Any]:
    return {
        "x": {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": {"zero": False, "nice": False},
        },
        "color": _colour(runs),
        "tooltip": [
            {"field": "run"},
            {"field": "contender"},
            {"field": field, "title": "tokens"},
            {"field": "ms", "title": "milliseconds", "format": ",.3~f"},
        ],
    }


def _milliseconds(values: Sequence[float], logarithmic: bool) -> dict[str, Any]:
    if logarithmic:
        scale = decades([value for value in values if value > 0] or [1.0])
        return {"field": "ms", "type": "quantitative", "title": "milliseconds a step, logarithmic",
                **scale}  # fmt: skip
    return {"field": "ms", "type": "quantitative", "title": "milliseconds a step",
            "scale": {"zero": True}}  # fmt: skip


def _names(runs: Mapping[str, Run]) -> list[str]:
    return [name for name in CONTENDERS if any(name in run.series for run in runs.values())]


def _colour(runs: Mapping[str, Run], *, legend: bool = True) -> dict[str, Any]:
    names = _names(runs)
    return {
        "field": "contender", "type": "nominal", "title": None,
        "scale": {"domain": names, "range": [_COLOURS[name] for name in names]},
        "legend": _legend(names) if legend else None,
    }  # fmt: skip


def _shape(runs: Mapping[str, Run]) -> dict[str, Any]:
    names = _names(runs)
    return {
        "field": "contender", "type": "nominal", "title": None,
        "scale": {"domain": names, "range": [_SHAPES[name] for name in names]},
        "legend": _legend(names),
    }  # fmt: skip


def _legend(names: list[str]) -> dict[str, Any]:
    """Long names stand below each other, so that a phone shows them whole."""
    return {"orient": "top", "columns": 2 if max(map(len, names)) < 16 else 1, "labelLimit": 220}


def _dash(runs: Mapping[str, Run]) -> dict[str, Any]:
    return {
        "field": "run", "type": "nominal", "title": None,
        "scale": {"domain": list(runs), "range": [[1, 0], [6, 4]][: len(runs)]},
        "legend": {"orient": "top"} if len(runs) > 1 else None,
    }  # fmt: skip


def _first(runs: Mapping[str, Run]) -> str:
    """The label of the first run: of the page's own making, digits and letters."""
    return next(iter(runs))


def _thinned(n: int) -> list[int]:
    """Places 1 .. n, as close together as a logarithmic axis shows them."""
    places = np.unique(np.geomspace(1, n, 120).round().astype(int))
    return [int(place) for place in places]
