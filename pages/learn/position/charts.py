"""Charts of the page "Position"."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.position.rotation import CIRCLE, KEY, MAX_DISTANCE, QUERY
from ui.charts.style import GREY, INK, KEYS, POSITIONS, QUERIES, SERIES

# Dash patterns, because lines may overlap.
_DASHES = [[1, 0], [7, 4], [2, 4], [10, 3, 2, 3], [4, 2]]


def products_chart(table: pd.DataFrame, distance: int) -> alt.TopLevelMixin:
    """Dot products of three positions with all others, by distance.

    table: columns `from`, `distance`, `product`. distance: the one to mark.
    """
    base = alt.Chart().encode(
        alt.X(
            "distance:Q",
            title="distance to the other position",
            scale=alt.Scale(nice=False),
        ),
        *_lines("from", list(table["from"].unique())),
        tooltip=[
            alt.Tooltip("from:N", title="from"),
            alt.Tooltip("distance:Q"),
            alt.Tooltip("product:Q", format=".4f"),
        ],
    )
    return alt.layer(
        _rule("distance", distance, "distance to the other position"),
        base.mark_line().encode(alt.Y("product:Q", title="dot product of the two vectors")),
        data=table,
        height=340,
    )


def cosines_chart(table: pd.DataFrame, title: str) -> alt.TopLevelMixin:
    """Cosines by distance: the mean of all pairs, and their range as a band.

    table: columns `table`, `distance`, `mean`, `low`, `high`. title: the learned table's title.
    """
    names = [title, *(name for name in table["table"].unique() if name != title)]
    base = alt.Chart().encode(
        alt.X(
            "distance:Q",
            title="distance between the two positions",
            axis=alt.Axis(tickMinStep=1),
            scale=alt.Scale(nice=False),
        ),
        alt.Color(
            "table:N",
            title=None,
            scale=alt.Scale(domain=names, range=[POSITIONS, GREY][: len(names)]),
            legend=alt.Legend(
                orient="top", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1
            ),
        ),
        tooltip=[
            alt.Tooltip("table:N", title="table"),
            alt.Tooltip("distance:Q"),
            *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high")),
        ],
    )
    return alt.layer(
        base.mark_area(opacity=0.2).encode(_cosine("low"), alt.Y2("high")),
        base.mark_line(strokeWidth=2).encode(_cosine("mean")),
        data=table,
        height=340,
    )


def _cosine(field: str) -> alt.Y:
    return alt.Y(field, type="quantitative", title="cosine of the two rows")


def arrows_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Pairs of numbers as arrows in circles, one arrow for the query, one for the key.

    table: columns `pair`, `what`, `x`, `y`, `order`, `length`, `angle`.
    """
    scale = alt.Scale(domain=[-1.08, 1.08], nice=False)
    x, y = (
        alt.X("x:Q", scale=scale, axis=None, title="first number"),
        alt.Y("y:Q", scale=scale, axis=None, title="second number"),
    )
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=[QUERY, KEY], range=[QUERIES, KEYS]),
        legend=alt.Legend(orient="top", symbolType="square", symbolOpacity=1),
    )
    told = [
        alt.Tooltip("what:N", title="vector"),
        alt.Tooltip("length:Q", title="length", format=".3f"),
        alt.Tooltip("angle:Q", title="degrees", format=".1f"),
    ]
    of_arrows = alt.Chart().transform_filter(f"datum.what != '{CIRCLE}'")
    circle = (
        alt.Chart()
        .transform_filter(f"datum.what == '{CIRCLE}'")
        .mark_line(color=GREY, strokeWidth=1)
        .encode(x, y, alt.Order("order:Q"))
    )
    lines = of_arrows.mark_rule(strokeWidth=3).encode(
        x, y, alt.X2(datum=0), alt.Y2(datum=0), colour, tooltip=told
    )
    tips = of_arrows.mark_point(filled=True, size=70, opacity=1).encode(x, y, colour, tooltip=told)
    pairs = list(table["pair"].unique())
    return alt.layer(circle, lines, tips, data=table, width=128, height=128).facet(
        alt.Facet("pair:N", title=None, sort=pairs), columns=2
    )


def score_chart(table: pd.DataFrame, distance: int) -> alt.TopLevelMixin:
    """The score by distance, with the key at two positions.

    table: columns `key at`, `distance`, `score`. distance: the one to mark.
    """
    title = "distance: tokens from the key to the query"
    base = alt.Chart().encode(
        alt.X("distance:Q", title=title, scale=alt.Scale(domain=[0, MAX_DISTANCE], nice=False)),
        *_lines("key at", list(table["key at"].unique())),
        tooltip=[
            alt.Tooltip("key at:N"),
            alt.Tooltip("distance:Q"),
            alt.Tooltip("score:Q", format=".4f"),
        ],
    )
    return alt.layer(
        _rule("distance", distance, title),
        base.mark_line().encode(alt.Y("score:Q", title="score, q·k/√D")),
        data=table,
        height=340,
    )


def reach_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Largest angle of each pair relative to training, one line per scaling.

    table: columns `scaling`, `pair`, `times`, `turns`. Pairs to the right of the dashed line don't
    complete a full turn in training.
    """
    title = "pair of numbers, from fast to slow"
    base = alt.Chart().encode(
        alt.X(
            "pair:Q", title=title, scale=alt.Scale(domain=[0, int(table["pair"].max())], nice=False)
        ),
        *_lines("scaling", list(table["scaling"].unique()), columns=3),
        tooltip=[
            alt.Tooltip("scaling:N"),
            alt.Tooltip("pair:Q"),
            alt.Tooltip("times:Q", title="× largest angle in training", format=".3f"),
            alt.Tooltip("turns:Q", title="full turns in training", format=".3~r"),
        ],
    )
    n_fast = int((table.drop_duplicates("pair")["turns"] >= 1).sum())
    return alt.layer(
        _rule("pair", n_fast - 0.5, title),
        base.mark_line().encode(
            alt.Y("times:Q", title="largest angle (× largest in training)"),
        ),
        data=table,
        height=340,
    )


def slow_chart(
    table: pd.DataFrame, trained_length: int, low: float, high: float
) -> alt.TopLevelMixin:
    """Contribution of slow pairs by distance; the band is the range in training.

    table: columns `scaling`, `distance`, `score`.
    """
    title = "distance: tokens from the key to the query"
    base = alt.Chart().encode(
        alt.X(
            "distance:Q",
            title=title,
            axis=alt.Axis(format=",d", tickCount=5),
            scale=alt.Scale(nice=False),
        ),
        *_lines("scaling", list(table["scaling"].unique())),
        tooltip=[
            alt.Tooltip("scaling:N"),
            alt.Tooltip("distance:Q", format=","),
            alt.Tooltip("score:Q", format=".3f"),
        ],
    )
    shown = alt.Chart(pd.DataFrame({"low": [low], "high": [high]})).mark_rect(
        color=POSITIONS, opacity=0.2
    )
    y = alt.Y("score:Q", title="contribution of the slow pairs")
    return alt.layer(
        shown.encode(alt.Y("low:Q", title="contribution of the slow pairs"), alt.Y2("high")),
        _rule("distance", trained_length, title),
        base.mark_line(strokeWidth=2).encode(y),
        data=table,
        height=340,
    )


def _rule(field: str, value: float, title: str) -> alt.Chart:
    """A dashed vertical line at a chosen value."""
    rule = alt.Chart(pd.DataFrame({field: [value]}))
    return rule.mark_rule(strokeDash=[3, 3], color=INK, size=1.5).encode(
        alt.X(field, type="quantitative", title=title)
    )


def _lines(field: str, names: list[str], columns: int = 3) -> tuple[alt.Color, alt.StrokeDash]:
    """A color and a dash pattern for each line, because lines may overlap."""
    legend = alt.Legend(
        orient="top", columns=columns, symbolType="stroke", symbolStrokeWidth=3, symbolSize=300
    )
    return (
        alt.Color(
            field,
            type="nominal",
            title=field,
            scale=alt.Scale(domain=names, range=SERIES[: len(names)]),
            legend=legend,
        ),
        alt.StrokeDash(
            field,
            type="nominal",
            title=field,
            scale=alt.Scale(domain=names, range=_DASHES[: len(names)]),
            legend=legend,
        ),
    )
