"""The charts of the page "Why several heads"; they use the visitor's words only as data."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.why_several_heads.head_roles import ALONE, OFF
from ui.charts.style import BLUE, GREY, HEADS, INK, VERMILLION, WEIGHTS, decades, token_axis

_LEGEND = alt.Legend(orient="top", symbolType="square", labelLimit=260, columns=3)
_DARK = "#14181e"


def row_chart(table: pd.DataFrame, heads: tuple[int, int]) -> alt.Chart:
    """Chart one group of bars per key, and one bar per map.

    table: columns `place`, `token`, `map`, `weight`. heads: the indices of both heads, for their
    colors; the average is gray.
    """
    labels = table.drop_duplicates("place").sort_values("place")["token"].tolist()
    names = list(table["map"].unique())
    first, second = (HEADS[head % len(HEADS)] for head in heads)
    if first == second:
        second = HEADS[(heads[1] + 1) % len(HEADS)]
    colours = [first, second, GREY] if len(names) == 3 else [first, GREY]
    return (
        alt.Chart(table, height=270)
        .mark_bar()
        .encode(
            alt.X(
                "place:O",
                title="key",
                axis=token_axis(labels),
            ),
            alt.XOffset("map:N", sort=names),
            alt.Y("weight:Q", title="weight", axis=alt.Axis(tickCount=5)),
            alt.Color(
                "map:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=_LEGEND
            ),
            tooltip=[
                alt.Tooltip("token:N", title="key"),
                alt.Tooltip("map:N"),
                alt.Tooltip("weight:Q", format=".5f"),
            ],
        )
    )


def noise_chart(table: pd.DataFrame, n_heads: int) -> alt.TopLevelMixin:
    """Chart measured noise with its range, and theory as a line; both axes are logarithmic.

    table: columns `heads`, `size`, `measured`, `low`, `high`, `theory`. n_heads: the chosen number.
    """
    counts = [int(count) for count in table["heads"]]
    x = alt.X(
        "heads:Q",
        title="number of heads H (head size C / H)",
        scale=alt.Scale(type="log", base=2, domain=[1, max(2, counts[-1])]),
        axis=alt.Axis(values=[count for count in counts if count & (count - 1) == 0], format="d"),
    )
    axis = decades([*table["low"], *table["high"]])
    axis["axis"] = {**axis["axis"], "values": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]}

    def noise(field: str) -> alt.Y:
        return alt.Y(field, type="quantitative", title="score noise", **axis)

    base = alt.Chart().encode(
        x,
        tooltip=[
            alt.Tooltip("heads:Q"),
            alt.Tooltip("size:Q", title="head size"),
            *(
                alt.Tooltip(f"{name}:Q", format=".4~r")
                for name in ("measured", "low", "high", "theory")
            ),
        ],
    )
    chosen = alt.Chart(pd.DataFrame({"heads": [n_heads]})).mark_rule(
        strokeDash=[3, 3], color=INK, size=1.5
    )
    return alt.layer(
        chosen.encode(x),
        base.mark_line(color=BLUE).encode(noise("theory")),
        base.mark_rule(color=VERMILLION).encode(noise("low"), alt.Y2("high")),
        base.mark_point(filled=True, size=45, opacity=1, color=VERMILLION).encode(
            noise("measured")
        ),
        data=table,
        height=250,
    )


def roles_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart what each head attends to, in percent; table: columns `job`, `head`, `share`."""
    table = table.assign(percent=(table["share"] * 100).round().astype(int))
    largest = float(table["share"].max())
    cells = alt.Chart().encode(
        alt.X(
            "head:O",
            title="head",
            axis=alt.Axis(labelAngle=0, orient="top", ticks=False, domain=False),
        ),
        alt.Y(
            "job:N",
            title="attends to (percent)",
            sort=list(table["job"].unique()),
            axis=alt.Axis(ticks=False, domain=False, labelLimit=160),
        ),
        tooltip=[
            alt.Tooltip("head:O"),
            alt.Tooltip("job:N", title="attends to"),
            alt.Tooltip("share:Q", format=".4f"),
        ],
    )
    on_bright = {"test": alt.datum.share > largest * 0.6, "value": _DARK}
    return alt.layer(
        cells.mark_rect().encode(
            alt.Color(
                "share:Q",
                scale=alt.Scale(domain=[0, largest], range=WEIGHTS, interpolate="rgb"),
                legend=None,
            )
        ),
        cells.mark_text(fontSize=13).encode(
            alt.Text("percent:Q"), alt.ColorValue("#ffffff", condition=[on_bright])
        ),
        data=table,
        height=alt.Step(26),
    )


def losses_chart(table: pd.DataFrame, without_any: float, unit: str) -> alt.TopLevelMixin:
    """Chart two bars per head, and a dashed line for all heads switched off.

    table: columns `head`, `heads`, `lost`. unit: the unit of `lost`.
    """
    lost = alt.Y("lost:Q", title=unit, axis=alt.Axis(tickCount=5))
    bars = alt.Chart().mark_bar()
    line = alt.Chart(pd.DataFrame({"lost": [without_any]}))
    return alt.layer(
        bars.encode(
            alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
            lost,
            alt.XOffset("heads:N", sort=[ALONE, OFF]),
            alt.Color(
                "heads:N",
                title=None,
                scale=alt.Scale(domain=[ALONE, OFF], range=[BLUE, VERMILLION]),
                legend=alt.Legend(orient="top", symbolType="square", labelLimit=260, columns=2),
            ),
            tooltip=[
                alt.Tooltip("head:O"),
                alt.Tooltip("heads:N"),
                alt.Tooltip("lost:Q", format=".4~r"),
            ],
        ),
        line.mark_rule(strokeDash=[4, 3], color=INK, size=1.5).encode(lost),
        data=table,
        height=280,
        title=alt.Title(
            "Dashed: all heads are off. A head that is off outputs zeros.",
            fontSize=13,
            fontWeight="normal",
        ),
    )
