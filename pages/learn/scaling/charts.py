"""Charts of the page "Scaling"."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from pages.learn.scaling.variances import D_KS, ENTROPY, GRADIENT, LARGEST, N_TOKENS
from ui.charts.style import INK, MARKS, SERIES, decades

# Dash patterns, because lines may overlap.
_DASHES = [[1, 0], [1, 0], [7, 4], [2, 4]]
_LIMITS = {
    ENTROPY: {"scale": alt.Scale(domain=[0, math.log(N_TOKENS)], nice=False)},
    LARGEST: {"scale": alt.Scale(domain=[0, 1])},
    GRADIENT: {"scale": alt.Scale(domain=[0, 1.5])},
}
_TITLES = {ENTROPY: f"entropy in nats (maximum: log {N_TOKENS})", LARGEST: "largest weight"}


def softmax_chart(table: pd.DataFrame) -> alt.Chart:
    """One group of bars per logit, with one bar per softmax.

    table: columns `logit`, `scores`, `weight`.
    """
    names = list(table["scores"].unique())
    places = list(table["logit"].unique())  # in the order that was typed
    return (
        alt.Chart(table, height=340)
        .mark_bar()
        .encode(
            alt.X(
                "logit:N",
                sort=places,
                title="position: logit",
                axis=alt.Axis(labelAngle=0 if len(places) < 6 else -60),
            ),
            alt.XOffset("scores:N", sort=names),
            alt.Y("weight:Q", title="weight", scale=alt.Scale(domain=[0, 1])),
            _colour("scores", names, "square"),
            tooltip=[
                alt.Tooltip("scores:N", title="softmax"),
                alt.Tooltip("logit:N"),
                alt.Tooltip("weight:Q", format=".6f"),
            ],
        )
    )


def variance_chart(table: pd.DataFrame, d_k: int) -> alt.TopLevelMixin:
    """Measured variances as points with spread, theory as lines, on log-log axes.

    table: columns `d_k`, `divided by`, `measured`, `low`, `high`, `theory`. d_k: the chosen one.
    """
    base = _base(
        table,
        *(alt.Tooltip(f"{name}:Q", format=".4~r") for name in ("measured", "theory")),
    )
    marks = alt.Axis(labelExpr=MARKS, values=[1e-9, 1e-6, 1e-3, 1, 1e3])
    return alt.layer(
        _chosen(d_k),
        base.mark_line().encode(_variance("theory", axis=marks)),
        base.mark_rule().encode(_variance("low"), alt.Y2("high")),
        base.mark_point(filled=True, size=45, opacity=1).encode(_variance("measured")),
        data=table,
        height=320,
    )


def measure_chart(table: pd.DataFrame, measure: str, d_k: int) -> alt.TopLevelMixin:
    """One measure of the softmax by d_k, with a line for each divisor.

    table: columns `d_k`, `divided by`, `value`. d_k: the chosen one.
    """
    names = _divisors(table)
    line = _base(table, alt.Tooltip("value:Q", title=measure, format=".4~r")).mark_line(
        point=alt.OverlayMarkDef(filled=True, size=40)
    )
    return alt.layer(
        _chosen(d_k),
        line.encode(
            alt.Y(
                "value:Q",
                title=_TITLES.get(measure, "gradient (uniform row = 1)"),
                **(_LIMITS.get(measure) or decades(table["value"])),
            ),
            alt.StrokeDash(
                "divided by:N",
                title="divided by",
                legend=_legend("stroke"),
                scale=alt.Scale(domain=names, range=_DASHES),
            ),
        ),
        data=table,
        height=320,
    )


def _base(table: pd.DataFrame, *measured: alt.Tooltip) -> alt.Chart:
    """Encodings shared by all marks; tooltips end with `measured`."""
    return alt.Chart().encode(
        _over_d_k(),
        _colour("divided by", _divisors(table), "stroke"),
        tooltip=[alt.Tooltip("divided by:N"), alt.Tooltip("d_k:Q"), *measured],
    )


def _chosen(d_k: int) -> alt.Chart:
    """A dashed vertical line at the chosen d_k."""
    rule = alt.Chart(pd.DataFrame({"d_k": [d_k]}))
    return rule.mark_rule(strokeDash=[3, 3], color=INK, size=1.5).encode(_over_d_k())


def _over_d_k() -> alt.X:
    return alt.X(
        "d_k:Q",
        title="d_k, the length of queries and keys",
        scale=alt.Scale(type="log", base=2, domain=[D_KS[0], D_KS[-1]]),
        axis=alt.Axis(values=[1, 4, 16, 64, 256, 1024], format="d"),
    )


def _variance(field: str, axis: alt.typing.Optional[alt.Axis] = alt.Undefined) -> alt.Y:
    return alt.Y(
        field,
        type="quantitative",
        title="variance of the scores",
        scale=alt.Scale(type="log"),
        axis=axis,
    )


def _divisors(table: pd.DataFrame) -> list[str]:
    return list(table["divided by"].unique())


def _colour(field: str, names: list[str], symbol: str) -> alt.Color:
    return alt.Color(
        field,
        type="nominal",
        title=field,
        scale=alt.Scale(domain=names, range=SERIES[: len(names)]),
        legend=_legend(symbol),
    )


def _legend(symbol: str) -> alt.Legend:
    # identical legends for colors and dashes are merged into one
    return alt.Legend(orient="top", columns=4, symbolType=symbol, symbolStrokeWidth=3)
