"""Charts of the page "Cheaper models"."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from ui.charts import style
from ui.charts.bars import paired_bars


def errors_chart(table: pd.DataFrame, ways: Sequence[str], k: int) -> alt.TopLevelMixin:
    """Output error by number of experts: columns `kept`, `error`, `units`."""
    lines = (
        alt.Chart(table)
        .mark_line(point=alt.OverlayMarkDef(size=25))
        .encode(
            alt.X("kept:O", title="experts per token", axis=alt.Axis(labelAngle=0)),
            alt.Y("error:Q", title="mean relative error", axis=alt.Axis(format="%")),
            alt.Color(
                "units:N",
                title="order of the units",
                scale=alt.Scale(domain=list(ways), range=[style.GREY, style.FEED_FORWARD]),
                legend=alt.Legend(
                    orient="top", columns=1, symbolType="stroke", symbolStrokeWidth=3
                ),
            ),
            tooltip=[
                alt.Tooltip("kept:O", title="experts"),
                alt.Tooltip("units:N"),
                alt.Tooltip("error:Q", format=".1%"),
            ],
        )
    )
    here = alt.Chart(pd.DataFrame({"kept": [k]})).mark_rule(color=style.INK, strokeDash=[4, 4])
    return alt.layer(lines, here.encode(alt.X("kept:O")), height=300)


def ranks_chart(table: pd.DataFrame, labels: Sequence[str]) -> alt.Chart:
    """Rank of the next tokens at every position; table: see `drafts.ranks`."""
    kinds = list(dict.fromkeys(table["which"]))
    return (
        alt.Chart(table, height=340)
        .mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=1)
        .encode(
            alt.X(
                "position:O",
                title="the model has read up to",
                axis=style.token_axis(list(labels)),
            ),
            alt.Y(
                "rank:Q",
                title="rank (1 is the most likely)",
                **style.decades(table["rank"].tolist()),
            ),
            alt.Color(
                "which:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=[style.BLUE, style.VERMILLION, style.GREEN]),
                legend=alt.Legend(orient="top", symbolType="circle", symbolOpacity=1),
            ),
            tooltip=[
                alt.Tooltip("reads up to:N"),
                alt.Tooltip("which:N", title="token"),
                alt.Tooltip("true token:N"),
                alt.Tooltip("rank:Q", format=","),
            ],
        )
    )


def expected_chart(table: pd.DataFrame, n_drafted: int) -> alt.Chart:
    """Tokens per pass by length of the draft: columns `drafted`, `tokens`."""
    shades = ["chosen" if number == n_drafted else "other" for number in table["drafted"]]
    return (
        alt.Chart(table.assign(shade=shades), height=220)
        .mark_bar()
        .encode(
            alt.X("drafted:O", title="drafted tokens", axis=alt.Axis(labelAngle=0)),
            alt.Y("tokens:Q", title="tokens per pass", scale=alt.Scale(zero=True)),
            alt.Color(
                "shade:N",
                scale=alt.Scale(domain=["chosen", "other"], range=[style.BLUE, style.GREY]),
                legend=None,
            ),
            tooltip=[
                alt.Tooltip("drafted:O", title="drafted tokens"),
                alt.Tooltip("tokens:Q", title="tokens per pass", format=".3f"),
            ],
        )
    )


def curve_chart(table: pd.DataFrame, n_layers: int) -> alt.TopLevelMixin:
    """Divergence from the teacher by depth: columns `layers`, `divergence`."""
    line = (
        alt.Chart(table)
        .mark_line(color=style.BLUE, point=alt.OverlayMarkDef(size=45))
        .encode(
            alt.X(
                "layers:Q",
                title="student layers",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(nice=False),
            ),
            alt.Y("divergence:Q", title="KL divergence (bits)", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("layers:Q"),
                alt.Tooltip("divergence:Q", title="bits", format=".2f"),
            ],
        )
    )
    here = alt.Chart(pd.DataFrame({"layers": [n_layers]}))
    rule = here.mark_rule(color=style.INK, strokeDash=[4, 4]).encode(alt.X("layers:Q"))
    return alt.layer(line, rule, height=320)


def tokens_chart(table: pd.DataFrame, kinds: tuple[str, str]) -> alt.Chart:
    """Bits after each token: `position`, `reads up to`, `right token` and `kinds`."""
    return paired_bars(
        table[["position", "reads up to", "right token", *kinds]],
        kinds,
        list(table["reads up to"]),
        of="the model has read up to",
        kind="kind",
        value="bits",
        tooltip=[
            alt.Tooltip("reads up to:N"),
            alt.Tooltip("right token:N"),
            alt.Tooltip("kind:N"),
            alt.Tooltip("bits:Q", format=".3f"),
        ],
        height=270,
    )
