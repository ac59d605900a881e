"""Charts of the page "Block"."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.block.activation import CURVE, NAMES, NUMBERS
from ui.charts import style
from ui.charts.style import MARKS

STREAM, ATTENTION, FEED_FORWARD = "stream", "attention adds", "feed-forward adds"


def stream_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Norms by layer: mean and range of the stream and its updates, and one token.

    table: columns `series`, `layers`, `low`, `mean`, `high`, `token`.
    """
    series = [STREAM, ATTENTION, FEED_FORWARD]
    base = alt.Chart().encode(
        _layers(int(table["layers"].max())),
        alt.Color(
            "series:N",
            title=None,
            scale=alt.Scale(
                domain=series, range=[style.STREAM, style.ATTENTION, style.FEED_FORWARD]
            ),
            legend=alt.Legend(orient="top", columns=2, symbolOpacity=1, symbolType="square"),
        ),
        tooltip=[
            alt.Tooltip("series:N", title="vector"),
            alt.Tooltip("layers:Q", title="layers passed"),
            alt.Tooltip("mean:Q", title="mean"),
            alt.Tooltip("token:Q", title="this token"),
        ],
    )
    return alt.layer(
        base.mark_area(opacity=0.15).encode(_norm("low"), alt.Y2("high")),
        base.mark_line(strokeWidth=2).encode(_norm("mean")),
        base.mark_line(strokeDash=[4, 3], strokeWidth=1.5, point=True).encode(_norm("token")),
        data=table,
        height=340,
    )


def _layers(most: int) -> alt.X:
    return alt.X(
        "layers:Q",
        title="layers passed (0: the embeddings)",
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(tickMinStep=1),
    )


def _norm(field: str) -> alt.Y:
    return alt.Y(
        field,
        type="quantitative",
        title="vector length (log scale)",
        scale=alt.Scale(type="log", nice=True),
        axis=alt.Axis(tickCount=5, labelExpr=MARKS),
    )


def lens_chart(table: pd.DataFrame) -> alt.Chart:
    """The final token's probability after each layer.

    table: columns `layers`, `probability`.
    """
    return (
        alt.Chart(table, height=240)
        .mark_line(point=True, color=style.BLUE)
        .encode(
            _layers(len(table) - 1),
            alt.Y(
                "probability:Q",
                title="probability of the final token",
                scale=alt.Scale(domain=[0, 1]),
            ),
            tooltip=[
                alt.Tooltip("layers:Q", title="layers passed"),
                alt.Tooltip("probability:Q", title="probability", format=".3r"),
            ],
        )
    )


def activation_chart(table: pd.DataFrame, function: str) -> alt.TopLevelMixin:
    """A non-linearity as a curve, with the numbers of a token on it.

    table: columns `series`, `before`, `after`. function: its name in `NAMES`.
    """
    base = alt.Chart().encode(
        alt.X("before:Q", title="number before the non-linearity"),
        alt.Y("after:Q", title=f"{NAMES[function]} of that number"),
        tooltip=[
            alt.Tooltip("before:Q", title="before", format=".3f"),
            alt.Tooltip("after:Q", title="after", format=".3f"),
        ],
    )
    line = base.mark_line(color=style.GREY, strokeWidth=2).transform_filter(_of(CURVE))
    points = base.mark_circle(color=style.FEED_FORWARD, size=28, opacity=0.6)
    return alt.layer(line, points.transform_filter(_of(NUMBERS)), data=table, height=320)


def _of(series: str) -> alt.FieldEqualPredicate:
    return alt.FieldEqualPredicate(field="series", equal=series)
