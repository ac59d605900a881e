"""Charts of the page "Timing", drawn from tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pages.kv_cache.timing.timing_run import TimingRun
from serving.timing.timed_contenders import (
    CONTENDERS,
    CORE_CACHED,
    CORE_GRAPHS,
    CORE_INT8,
    CORE_UNCACHED,
    TRANSFORMERS_CACHED,
    TRANSFORMERS_UNCACHED,
)
from ui.charts.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION, decades

HEIGHT = 360
COLOURS = {
    CORE_CACHED: BLUE,
    CORE_UNCACHED: VERMILLION,
    TRANSFORMERS_CACHED: GREEN,
    TRANSFORMERS_UNCACHED: ORANGE,
    CORE_INT8: PURPLE,
    CORE_GRAPHS: GREY,
}
_SHAPES = {
    CORE_CACHED: "circle",
    CORE_UNCACHED: "triangle-up",
    TRANSFORMERS_CACHED: "square",
    TRANSFORMERS_UNCACHED: "triangle-down",
    CORE_INT8: "diamond",
    CORE_GRAPHS: "cross",
}
_FIT_POINTS = 33
_CURVE_POINTS = 120


def median_steps(runs: Mapping[str, TimingRun]) -> pd.DataFrame:
    """One row per decode step: `run`, `contender`, `tokens` so far and median `ms`.

    `first` marks the first run, whose points are filled; those of a second run aren't.
    """
    return pd.DataFrame(
        {
            "run": label,
            "first": label == next(iter(runs)),
            "contender": name,
            "tokens": n,
            "ms": round(ms, 4),
        }
        for label, run in runs.items()
        for name, series in run.series.items()
        for n, ms in zip(
            series.n_keys[1:].tolist(), (series.medians[1:] * 1e3).tolist(), strict=True
        )
    )


def fitted_steps(runs: Mapping[str, TimingRun]) -> pd.DataFrame:
    """The fitted lines, with the columns of `median_steps`.

    Points below zero are left out, because a logarithmic axis can't show them.
    """
    return pd.DataFrame(
        {"run": label, "contender": name, "tokens": round(n, 1), "ms": round(ms, 4)}
        for label, run in runs.items()
        for name, series in run.series.items()
        for n in np.linspace(series.n_keys[1], series.n_keys[-1], _FIT_POINTS).tolist()
        if (ms := series.fit.predict(n) * 1e3) > 0
    )


def totals(runs: Mapping[str, TimingRun]) -> pd.DataFrame:
    """Median total seconds `s` of the first 1, 2, ... `new` tokens."""
    rows = []
    for label, run in runs.items():
        for name, series in run.series.items():
            seconds = np.median(series.cumulative, axis=0)
            rows += [
                {"run": label, "contender": name, "new": n, "s": float(f"{seconds[n - 1]:.5g}")}
                for n in _log_spaced(len(seconds))
            ]
    return pd.DataFrame(rows)


def per_token(points: pd.DataFrame, lines: pd.DataFrame, logarithmic: bool) -> alt.TopLevelMixin:
    """Chart the milliseconds per decode step against the tokens, with fitted lines.

    points, lines: as `median_steps` and `fitted_steps`. Only the first run's points are filled.
    """
    names = _names(points)
    y = alt.Y("ms:Q", title="milliseconds per step", scale=alt.Scale(zero=True))
    if logarithmic:
        marks = decades(points["ms"][points["ms"] > 0].tolist() or [1.0])
        y = alt.Y("ms:Q", title="milliseconds per step (logarithmic)", **marks)
    colours = alt.Scale(domain=names, range=[COLOURS[name] for name in names])
    shapes = alt.Scale(domain=names, range=[_SHAPES[name] for name in names])
    both = (
        alt.X(
            "tokens:Q",
            title="tokens so far, prompt included",
            scale=alt.Scale(zero=False, nice=False),
        ),
        y,
        alt.Color("contender:N", title=None, scale=colours, legend=legend(names)),
        _tooltip("tokens:Q", alt.Tooltip("ms:Q", title="milliseconds", format=",.3~f")),
    )
    filled = {"field": "contender", "type": "nominal", "scale": colours, "legend": None}
    steps = (
        alt.Chart(points)
        .mark_point(size=16, strokeWidth=1)
        .encode(
            *both,
            alt.Shape("contender:N", title=None, scale=shapes, legend=legend(names)),
            alt.FillValue("transparent", condition={"test": "datum.first", **filled}),
        )
    )
    fits = alt.Chart(lines).mark_line(strokeWidth=2).encode(*both, _dash(points))
    return alt.layer(steps, fits, height=HEIGHT)


def cumulative(table: pd.DataFrame) -> alt.Chart:
    """Chart the total seconds against the number of new tokens, both logarithmic.

    table: as `totals`.
    """
    names, most = _names(table), int(table["new"].max())
    marks = decades(table["s"].tolist())
    colours = alt.Scale(domain=names, range=[COLOURS[name] for name in names])
    values = [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= most]
    return (
        alt.Chart(table, height=HEIGHT)
        .mark_line(strokeWidth=2)
        .encode(
            alt.X(
                "new:Q",
                title="new tokens (logarithmic)",
                scale=alt.Scale(type="log", domain=[1, most], nice=False),
                axis=alt.Axis(values=values, format="d"),
            ),
            alt.Y("s:Q", title="total seconds (logarithmic)", **marks),
            alt.Color("contender:N", title=None, legend=legend(names), scale=colours),
            _dash(table),
            tooltip=_tooltip("new:Q", alt.Tooltip("s:Q", title="seconds", format=",.4~r")),
        )
    )


def legend(names: Sequence[str]) -> dict[str, Any]:
    """A legend that stacks long names, so that they fit on a phone."""
    return {"orient": "top", "columns": 2 if max(map(len, names)) < 16 else 1, "labelLimit": 220}


def _tooltip(tokens: str, measurements: alt.Tooltip) -> list[alt.Tooltip]:
    by_name = [alt.Tooltip("run:N"), alt.Tooltip("contender:N")]
    return [*by_name, alt.Tooltip(tokens, title="tokens"), measurements]


def _names(table: pd.DataFrame) -> list[str]:
    present = set(table["contender"])
    return [name for name in CONTENDERS if name in present]


def _dash(table: pd.DataFrame) -> alt.StrokeDash:
    runs = list(table["run"].unique())
    dashes = alt.Scale(domain=runs, range=[[1, 0], [6, 4]][: len(runs)])
    return alt.StrokeDash(
        "run:N",
        title=None,
        scale=dashes,
        legend=alt.Legend(orient="top") if len(runs) > 1 else None,
    )


def _log_spaced(n: int) -> list[int]:
    """Positions from 1 to n, spaced evenly on a logarithmic axis."""
    places = np.unique(np.geomspace(1, n, _CURVE_POINTS).round().astype(int))
    return [int(place) for place in places]
