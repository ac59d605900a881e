"""The charts of the page "Generated tokens": tables in, Altair charts out.

Tokens are a visitor's or a model's text: they stand in the column `token` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from pages.compare.generated_tokens.sink import EVEN, KEY, SHARE, STATE, VALUE, WEIGHT
from ui.charts.style import BLUE, GREEN, PURPLE, VERMILLION, decades

DASHES = [[1, 0], [6, 3], [2, 3]]


def bars(row: pd.DataFrame, largest: float) -> alt.Chart:
    """The row of a step as bars, with room for all keys of the run: nothing moves between steps.

    row: as `step.row`. largest: where the axis ends.
    """
    x = alt.X("token:N").title("key").scale(domain=list(row["token"]))
    return (
        alt.Chart(row.dropna())
        .mark_bar(color=BLUE)
        .encode(
            x.axis(labelAngle=-90, labelOverlap=True, labelLimit=90),
            alt.Y("weight:Q").title("weight").scale(domain=[0, largest]),
            tooltip=["position:Q", "token:N", alt.Tooltip("weight:Q").format(".6f")],
        )
        .properties(height=260)
    )


def sink_weight(table: pd.DataFrame) -> alt.Chart:
    """Weight on the first token and its share of what is written; table as `sink.by_layer`."""
    y = alt.Y("value:Q").title("share of a row").scale(domain=[0, 1])
    return _lines(table, {WEIGHT: VERMILLION, SHARE: BLUE, EVEN: PURPLE}, y)


def sink_ratios(table: pd.DataFrame) -> alt.Chart:
    """Lengths of the first token's vectors over the median of the others, by layer."""
    colours = {STATE: GREEN, VALUE: BLUE, KEY: VERMILLION}
    values = table[list(colours)].to_numpy().ravel()
    marks = decades([*values[values > 0].tolist(), 1.0])
    y = alt.Y("value:Q").title("times the median length")
    return _lines(table, colours, y.scale(**marks["scale"]).axis(**marks["axis"]))


def _lines(table: pd.DataFrame, colours: Mapping[str, str], y: alt.Y) -> alt.Chart:
    """A line for each of these columns of the table, over its layers."""
    names = list(colours)
    legend = alt.Legend(orient="top", symbolType="stroke", columns=3, symbolStrokeWidth=3)
    layers = [0, max(int(table["layer"].max()), 1)]
    colour = alt.Color("what:N").title(None).legend(legend)
    dash = alt.StrokeDash("what:N").title(None).legend(legend)
    return (
        alt.Chart(table.melt("layer", names, "what", "value"))
        .mark_line(point=alt.OverlayMarkDef(size=25), strokeWidth=2)
        .encode(
            alt.X("layer:Q").axis(tickMinStep=1).scale(domain=layers, nice=False),
            y,
            colour.scale(domain=names, range=list(colours.values())),
            dash.scale(domain=names, range=DASHES),
            tooltip=["layer:Q", "what:N", alt.Tooltip("value:Q").format(".4~g")],
        )
        .properties(height=320)
    )
