"""The charts of the page "Similarity"; they use the visitor's words only as data."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.similarity.words import BY_COSINE, BY_DOT, IN_TEXT
from ui.charts.style import BLUE, GREY, INK, VERMILLION

COLOURS = {IN_TEXT: GREY, BY_COSINE: BLUE, BY_DOT: VERMILLION}
HEIGHT, LIST_HEIGHT = 270, 185
LABELLED = 1  # how many tokens of each table get a label: those with the largest cosines


def fan_chart(points: pd.DataFrame, token: str, length: float) -> alt.TopLevelMixin:
    """Draw vectors as a fan: the chosen one is horizontal, the others at their true angles to it.

    points: columns `token`, `mode`, `length`, `cosine`, `dot`, `along`, `across`. token, length:
    the chosen vector's token and length. Both axes have the same scale.
    """
    start = min(0.0, float(points["along"].min())) - 0.3
    span = 1.08 * max(length, float(points["along"].max())) - start
    top = 1.12 * float(points["across"].max())
    unit = f"max({top} / height, {span} / width)"
    x_scale = alt.Scale(
        domainMin=start, domainMax=alt.ExprRef(f"{start} + width * {unit}"), nice=False, zero=False
    )
    y_scale = alt.Scale(domainMin=0, domainMax=alt.ExprRef(f"height * {unit}"), nice=False)
    x = alt.X("along:Q", title="component along the word's vector", scale=x_scale)
    y = alt.Y("across:Q", title="component perpendicular to it", scale=y_scale)
    colour = alt.Color(
        "which:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", symbolType="circle", symbolOpacity=1, columns=3),
    )
    tooltip = [
        alt.Tooltip("token:N"),
        alt.Tooltip("which:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("length", "cosine", "dot")),
        alt.Tooltip("degrees:Q", title="angle in degrees", format=".0f"),
    ]
    chosen = pd.DataFrame(
        {"token": [token], "along": [length], "across": [0.0], "start": [0.0], "end": [0.0]}
    )
    rays = points.assign(start=0.0, end=0.0)
    ends = (alt.X2("start"), alt.Y2("end"))
    labelled = pd.concat(rows.nlargest(LABELLED, "cosine") for _, rows in points.groupby("which"))
    return alt.layer(
        alt.Chart(rays).mark_rule(opacity=0.35).encode(x, y, *ends, colour),
        alt.Chart(points).mark_circle(size=55, opacity=1).encode(x, y, colour, tooltip=tooltip),
        alt.Chart(chosen).mark_rule(color=INK, size=4).encode(x, y, *ends),
        alt.Chart(labelled)
        .mark_text(align="left", dx=5, dy=-8, color=INK)
        .encode(x, y, alt.Text("token:N")),
        alt.Chart(chosen)
        .mark_text(align="right", dy=-9, color=INK, fontWeight="bold")
        .encode(x, y, alt.Text("token:N")),
        height=HEIGHT,
    )
