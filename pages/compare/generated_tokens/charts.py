"""Altair charts of the page "Generated tokens".

Tokens come from users and models, so they appear only in the column `token`.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from pages.compare.generated_tokens.sink import EVEN, KEY, SHARE, STATE, VALUE, WEIGHT
from ui.charts.style import BLUE, KEYS, PURPLE, STREAM, VALUES, VERMILLION, decades

DASHES = [[1, 0], [6, 3], [2, 3]]


def bars(row: pd.DataFrame, largest: float) -> alt.Chart:
    """The weights of a step as bars. The axis includes all keys of the run, so bars don't move.

    row: from `step.row`. largest: the upper end of the axis.
    """
    return (
        alt.Chart(row.dropna(), height=260)
        .mark_bar(color=BLUE)
        .encode(
            alt.X(
                "token:N",
                title="key",
                scale=alt.Scale(domain=list(row["token"])),
                axis=alt.Axis(labelAngle=-90, labelOverlap=True, labelLimit=90),
            ),
            alt.Y("weight:Q", title="weight", scale=alt.Scale(domain=[0, largest])),
            tooltip=[
                alt.Tooltip("position:Q"),
                alt.Tooltip("token:N"),
                alt.Tooltip("weight:Q", format=".6f"),
            ],
        )
    )


def sink_weight(table: pd.DataFrame) -> alt.Chart:
    """Weight on the first token and its share of the output. Table: `sink.by_layer`."""
    y = alt.Y("value:Q", title="share of a row", scale=alt.Scale(domain=[0, 1]))
    return _lines(table, {WEIGHT: VERMILLION, SHARE: BLUE, EVEN: PURPLE}, y)


def sink_ratios(table: pd.DataFrame) -> alt.Chart:
    """Lengths of the first token's vectors relative to the median of the others, by layer."""
    colors = {STATE: STREAM, VALUE: VALUES, KEY: KEYS}
    values = table[list(colors)].to_numpy().ravel()
    marks = decades([*values[values > 0].tolist(), 1.0])
    return _lines(table, colors, alt.Y("value:Q", title="times the median length", **marks))


def _lines(table: pd.DataFrame, colors: Mapping[str, str], y: alt.Y) -> alt.Chart:
    """One line per column, over the layers of the table."""
    names = list(colors)
    legend = alt.Legend(orient="top", symbolType="stroke", columns=3, symbolStrokeWidth=3)
    layers = [0, max(int(table["layer"].max()), 1)]
    color_scale = alt.Scale(domain=names, range=list(colors.values()))
    dashes = alt.Scale(domain=names, range=DASHES)
    return (
        alt.Chart(table.melt("layer", names, "what", "value"), height=320)
        .mark_line(point=alt.OverlayMarkDef(size=25), strokeWidth=2)
        .encode(
            alt.X(
                "layer:Q",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(domain=layers, nice=False),
            ),
            y,
            alt.Color("what:N", title=None, legend=legend, scale=color_scale),
            alt.StrokeDash("what:N", title=None, legend=legend, scale=dashes),
            tooltip=[
                alt.Tooltip("layer:Q"),
                alt.Tooltip("what:N"),
                alt.Tooltip("value:Q", format=".4~r"),
            ],
        )
    )
