"""The charts of the page "Why attention". The words of a visitor stand in columns only."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pages.learn.why_attention.influence import ATTENTION, GRU, LENGTHS
from pages.learn.why_attention.timing import FEW, MANY
from ui.charts.style import INK, SERIES, VERMILLION, decades
from ui.widgets.head_picture import isolated

MAX_WORDS_ON_AXIS = 20
_POINTS = alt.OverlayMarkDef(filled=True, size=45)


def reach_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """The share of every position, a line for each network, on a logarithmic axis.

    table: columns `position`, `word`, `network`, `share`.
    """
    few = table["position"].nunique() <= MAX_WORDS_ON_AXIS
    labels = [
        f"{position} {isolated(word[:12])}" if few else str(position)
        for position, word in zip(table["position"], table["word"], strict=True)
    ]
    x = (
        alt.X("token:O")
        .sort(None)
        .title("position of the word (the last one is read)")
        .axis(labelAngle=-60 if few else 0, labelOverlap=not few)
    )
    return _shares(table.assign(token=labels), x, ["token:N", "word:N"])


def growth_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """The share of token 0 over the length of the sentence.

    table: columns `tokens`, and the share in each network under the network's name.
    """
    x = (
        alt.X("tokens:Q")
        .title("tokens in the sentence")
        .scale(type="log", base=2, domain=[LENGTHS[0], LENGTHS[-1]])
        .axis(values=LENGTHS, format="d")
    )
    rows = table.melt("tokens", var_name="network", value_name="share")
    return _shares(rows, x, ["tokens:Q"])


def reading_chart(table: pd.DataFrame) -> alt.Chart:
    """Bars: how much of each token is read back; table: columns `position`, `part`."""
    return (
        alt.Chart(table)
        .mark_bar(color=VERMILLION)
        .encode(
            alt.X("position:O")
            .title(f"position of the token, 0 to {len(table) - 1}")
            .axis(labelAngle=0),
            alt.Y("part:Q").title("part that is read back").scale(domain=[0, 1], clamp=True),
            tooltip=[
                alt.Tooltip("position:O").title("position"),
                alt.Tooltip("part:Q").title("part that is read back").format(".3f"),
            ],
        )
        .properties(height=260)
    )


def times_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Milliseconds over the length, both axes logarithmic, with the range of the repeats.

    table: columns `run`, `tokens`, `ms` (the median), `low`, `high`.
    """
    axis = decades([*table["low"], *table["high"]])
    base = alt.Chart().encode(
        alt.X("tokens:Q")
        .title("tokens in the sentence")
        .scale(type="log", base=2, domain=[FEW[0], MANY[-1]])
        .axis(values=MANY, format="d"),
        _colour("run", list(table["run"].unique())),
        tooltip=[
            "run:N",
            "tokens:Q",
            *(alt.Tooltip(f"{name}:Q").format(".3~g") for name in ("ms", "low", "high")),
        ],
    )
    title = "milliseconds (median and range)"
    return (
        alt.layer(
            base.mark_line(point=_POINTS).encode(alt.Y("ms:Q", **axis).title(title)),
            base.mark_rule().encode(alt.Y("low:Q", **axis).title(title), alt.Y2("high")),
            data=table,
        )
        .properties(height=320)
        .configure_legend(labelLimit=300)
    )


def _shares(table: pd.DataFrame, x: alt.X, tooltip: list[str]) -> alt.TopLevelMixin:
    """Lines of `share` over `x`, and a dashed line where all shares are equal."""
    equal = alt.Chart(pd.DataFrame({"share": [1]})).mark_rule(strokeDash=[3, 3], color=INK)
    lines = alt.Chart().mark_line(point=_POINTS)
    return (
        alt.layer(
            equal.encode(y="share:Q"),
            lines.encode(
                x,
                alt.Y("share:Q", **decades(table["share"])).title("influence, × an equal share"),
                _colour("network", [GRU, ATTENTION]),
                tooltip=[*tooltip, "network:N", alt.Tooltip("share:Q").format(".4~g")],
            ),
            data=table,
        )
        .properties(height=320)
        .configure_legend(labelLimit=300)
    )


def _colour(field: str, names: list[str]) -> alt.Color:
    return (
        alt.Color(field, type="nominal")
        .title(None)
        .scale(domain=names, range=SERIES[: len(names)])
        .legend(orient="top", symbolType="stroke", symbolStrokeWidth=3, columns=2)
    )
