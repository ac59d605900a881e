"""Charts of the page "Calculator", drawn from the tables of `numbers`."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from pages.kv_cache.calculator.numbers import CACHE, LEFT, PLAIN, REAL, WEIGHTS, WITHIN
from pages.kv_cache.calculator.setting import CONTEXTS
from ui.charts.style import BLUE, GREEN, INK, PURPLE, VERMILLION, decades

ROW = 20  # height in pixels per model, including the axis
_COLOURS = {REAL: BLUE, PLAIN: PURPLE, WEIGHTS: VERMILLION, LEFT: GREEN}
_DASHES = {REAL: [1, 0], PLAIN: [2, 3], WEIGHTS: [8, 4], LEFT: [8, 3, 2, 3]}
_SIZE = alt.Tooltip("GB:Q", format=",.4~r")


def context_chart(
    lines: pd.DataFrame, levels: pd.DataFrame, chosen: pd.DataFrame
) -> alt.TopLevelMixin:
    """Chart the cache size and the weights against the context, both logarithmic.

    lines, levels, chosen: as `lengths`, `levels` and `chosen_point` of `numbers`.
    """
    names = [*lines["what"].unique(), *levels["what"].unique()]
    x = alt.X(
        "tokens:Q",
        title="tokens per sequence (logarithmic)",
        scale=alt.Scale(type="log", base=2, domain=[CONTEXTS[0], CONTEXTS[-1]], nice=False),
        axis=alt.Axis(values=[2**power for power in range(7, 21, 3)], format=",d"),
    )
    y = alt.Y("GB:Q", title="GB (logarithmic)", **_decades(lines, levels))
    colour = alt.Color(
        "what:N",
        title=None,
        legend=_legend(),
        scale=alt.Scale(domain=names, range=[_COLOURS[name] for name in names]),
    )
    dash = alt.StrokeDash(
        "what:N",
        legend=None,
        scale=alt.Scale(domain=names, range=[_DASHES[name] for name in names]),
    )
    tooltip = [alt.Tooltip("what:N"), _SIZE]
    of_a_length = [*tooltip, alt.Tooltip("tokens:Q", format=",d")]
    curves = alt.Chart(lines).mark_line(strokeWidth=2.5)
    rules = alt.Chart(levels).mark_rule(strokeWidth=2)
    point = alt.Chart(chosen).mark_point(filled=True, size=110, color=INK, opacity=1)
    return alt.layer(
        curves.encode(x, y, colour, dash, tooltip=of_a_length),
        rules.encode(y, colour, dash, tooltip=tooltip),
        point.encode(x, y, tooltip=of_a_length),
        height=380,
    )


def models_chart(sizes: pd.DataFrame, choice: str, setting: str) -> alt.TopLevelMixin:
    """Chart each model's cache, and how large it would be with plain multi-head attention.

    It shows points instead of bars because a logarithmic axis has no zero.
    sizes: as `numbers.sizes_of_models`. choice: the highlighted model's name, which must come from
    the site's own list because it becomes part of a Vega expression. setting: the shared settings.
    """
    order = list(sizes["model"].unique())
    rows = alt.Axis(
        labelLimit=200,
        labelOverlap=False,
        labelFlush=False,
        labelFontWeight=alt.condition(
            alt.datum.value == choice, alt.value("bold"), alt.value("normal")
        ),
        grid=True,
        gridOpacity=0.3,
    )
    y = alt.Y("model:N", sort=order, title="model", axis=rows)
    names = [REAL, PLAIN, WEIGHTS]
    colours = alt.Scale(domain=names, range=[_COLOURS[name] for name in names])
    shapes = alt.Scale(domain=names, range=["circle", "diamond", "cross"])
    saved = sizes.pivot(index="model", columns="what", values="GB").reset_index()
    within = (alt.datum.what == REAL) & (alt.datum.context == WITHIN)
    lines = (
        alt.Chart(saved[["model", REAL, PLAIN]])
        .mark_rule(color=PURPLE, strokeWidth=1.5)
        .encode(y, _x(sizes, REAL), alt.X2(PLAIN))
    )
    points = (
        alt.Chart(sizes)
        .mark_point(size=75, strokeWidth=2)
        .encode(
            _x(sizes, "GB"),
            y,
            alt.Color("what:N", title=None, legend=_legend(), scale=colours),
            alt.Shape("what:N", title=None, legend=_legend(), scale=shapes),
            alt.FillValue("transparent", condition=[{"test": within, "value": BLUE}]),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("form:N"),
                alt.Tooltip("what:N"),
                _SIZE,
                alt.Tooltip("context:N"),
            ],
        )
    )
    empty = ["Empty circle: this context is longer than", "the one the model was published with."]
    # split into lines that fit on a phone
    title = alt.Title(
        setting.split(", "), subtitle=empty, anchor="start", fontSize=14, subtitleFontSize=13
    )
    return alt.layer(lines, points, height=ROW * len(order), title=title)


def family_chart(sizes: pd.DataFrame) -> alt.Chart:
    """Chart weights and cache of the GPT-3 sizes, as in `numbers.sizes_of_family`."""
    names = [WEIGHTS, CACHE]
    colours = alt.Scale(domain=names, range=[VERMILLION, BLUE])
    dashes = alt.Scale(domain=names, range=[[8, 4], [1, 0]])
    legend = {**_legend(), "symbolStrokeWidth": 0}
    return (
        alt.Chart(sizes, height=380)
        .mark_line(point=alt.OverlayMarkDef(size=70, filled=True), strokeWidth=2.5)
        .encode(
            alt.X(
                "model:N",
                sort=list(sizes["model"].unique()),
                title="GPT-3",
                axis=alt.Axis(labelAngle=-40, labelOverlap=False),
            ),
            alt.Y("GB:Q", title="GB (logarithmic)", **_decades(sizes)),
            alt.Color("what:N", title=None, legend=legend, scale=colours),
            alt.StrokeDash("what:N", legend=None, scale=dashes),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("what:N"),
                _SIZE,
                alt.Tooltip("parameters:Q", format=",d"),
            ],
        )
    )


def _x(sizes: pd.DataFrame, column: str) -> alt.X:
    return alt.X(f"{column}:Q", title="GB (logarithmic)", **_decades(sizes))


def _decades(*tables: pd.DataFrame) -> dict[str, Any]:
    """A logarithmic scale and axis that cover all sizes in these tables."""
    return decades([size for table in tables for size in table["GB"]])


def _legend() -> dict[str, Any]:
    return {"orient": "top", "columns": 2, "labelLimit": 260}
