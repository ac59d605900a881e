"""Charts of the page "Attention without the matrix"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from pages.learn.attention_without_the_matrix.tile_walk import LATER, NOW, SKIPPED, USED
from ui.charts.style import ATTENTION, GREY, INK, SERIES, WEIGHTS, decades, position_label_expr

HEIGHT = 420
_OPACITY = 0.4  # keeps the cells under the tiles readable
MAX_NAMED = 16  # with more keys, overlapping labels are hidden
# Fill color by state; the cells of the current tile are drawn on top.
_FILLS = {NOW: "transparent", USED: ATTENTION, LATER: GREY, SKIPPED: "transparent"}


def tiles_chart(
    tiles: pd.DataFrame, cells: pd.DataFrame, labels: Sequence[str]
) -> alt.TopLevelMixin:
    """The matrix divided into tiles, with the cells of the current tile.

    tiles: as in `tile_walk.tiles_at`. cells: as in `tile_walk.cells_of`.
    """
    count = len(labels)
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    axis: dict[str, Any] = {
        "values": list(range(count)),
        "labelExpr": position_label_expr(labels),
        "labelLimit": 90,
        "grid": False,
        "ticks": False,
    }
    x = alt.X(
        "left:Q",
        title="key",
        scale=scale,
        axis=alt.Axis(labelAngle=-60, labelOverlap=count > MAX_NAMED, **axis),
    )
    y = alt.Y(
        "top:Q",
        title="query",
        scale=alt.Scale(domain=[count - 0.5, -0.5], nice=False),
        axis=alt.Axis(labelOverlap=True, **axis),
    )
    place = [x, y, alt.X2("right"), alt.Y2("bottom")]
    whole = (
        alt.Chart(tiles)
        .mark_rect(stroke=GREY, strokeWidth=1, fillOpacity=_OPACITY)
        .encode(
            *place,
            alt.Color(
                "state:N",
                title=None,
                scale=alt.Scale(domain=list(_FILLS), range=list(_FILLS.values())),
                legend=alt.Legend(
                    orient="top",
                    values=[USED, LATER, SKIPPED],
                    symbolType="square",
                    symbolOpacity=_OPACITY,
                    symbolStrokeColor=GREY,
                    symbolStrokeWidth=1,
                ),
            ),
            tooltip=[alt.Tooltip("state:N", title="tile")],
        )
    )
    numbers = (
        alt.Chart(cells)
        .mark_rect(stroke=INK, strokeWidth=0.5)
        .encode(
            *place,
            alt.Fill(
                "term:Q",
                title="exp(score − m)",
                scale=alt.Scale(domain=[0, 1], range=WEIGHTS),
                legend=alt.Legend(orient="bottom", gradientLength=120, titleOrient="left"),
            ),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("key:N"),
                alt.Tooltip("score:Q", format=".4f"),
                alt.Tooltip("term:Q", title="exp(score − m)", format=".4f"),
            ],
        )
    )
    return alt.layer(whole, numbers, height=HEIGHT)


def traffic_chart(table: pd.DataFrame, n_tokens: int) -> alt.TopLevelMixin:
    """Bytes that one head moves, by text length; the chosen length is marked.

    table: columns `how`, `tokens`, `bytes`.
    """
    title, names = "tokens in the text", list(table["how"].unique())
    lengths = sorted(set(table["tokens"].tolist()))
    of_bytes = decades(table["bytes"].tolist())
    x = alt.X(
        "tokens:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=[lengths[0], lengths[-1]], nice=False),
        axis=alt.Axis(values=lengths[::2], format=",d"),
    )
    lines = (
        alt.Chart()
        .mark_line(point=True)
        .encode(
            x,
            alt.Y(
                "bytes:Q",
                title="bytes read and written",
                scale=of_bytes["scale"],
                axis={**of_bytes["axis"], "format": "~s"},
            ),
            alt.Color(
                "how:N",
                title=None,
                scale=alt.Scale(domain=names, range=SERIES[: len(names)]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("how:N"),
                alt.Tooltip("tokens:Q", format=","),
                alt.Tooltip("bytes:Q", format=","),
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame({"tokens": [n_tokens]}))
        .mark_rule(strokeDash=[3, 3], color=INK, size=1.5)
        .encode(x)
    )
    return alt.layer(rule, lines, data=table, height=300)
