"""The charts of the page "Why attention"; they use the visitor's words only as data."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from pages.learn.why_attention.influence import ATTENTION, GRU, LENGTHS
from pages.learn.why_attention.timing import FEW, MANY
from ui.charts.style import INK, SERIES, VERMILLION, decades
from ui.text.isolated import isolated

MAX_WORDS_ON_AXIS = 20
_POINTS = alt.OverlayMarkDef(filled=True, size=45)
_WHOLE_LABELS = alt.Config(legend=alt.LegendConfig(labelLimit=300))


def reach_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart the share of every position, one line per network, on a logarithmic axis.

    table: columns `position`, `word`, `network`, `share`.
    """
    few = table["position"].nunique() <= MAX_WORDS_ON_AXIS
    labels = [
        f"{position} {isolated(word[:12])}" if few else str(position)
        for position, word in zip(table["position"], table["word"], strict=True)
    ]
    x = alt.X(
        "token:O",
        sort=None,
        title="position of the word",
        axis=alt.Axis(labelAngle=-60 if few else 0, labelOverlap=not few),
    )
    return _shares(table.assign(token=labels), x, ["token:N", "word:N"])


def growth_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart token 0's share by sentence length.

    table: columns `tokens`, and one per network with its share.
    """
    rows = table.melt("tokens", var_name="network", value_name="share")
    return _shares(rows, _lengths(LENGTHS[0], LENGTHS), ["tokens:Q"])


def readout_chart(table: pd.DataFrame) -> alt.Chart:
    """Chart the fraction of each token that is recovered; table: columns `position`, `part`."""
    return (
        alt.Chart(table, height=260)
        .mark_bar(color=VERMILLION)
        .encode(
            alt.X(
                "position:O",
                title=f"position of the token, 0 to {len(table) - 1}",
                axis=alt.Axis(labelAngle=0),
            ),
            alt.Y(
                "part:Q",
                title="fraction recovered",
                scale=alt.Scale(domain=[0, 1], clamp=True),
            ),
            tooltip=[
                alt.Tooltip("position:O", title="position"),
                alt.Tooltip("part:Q", title="fraction recovered", format=".3f"),
            ],
        )
    )


def times_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart milliseconds by length, with the range of the repeats; both axes are logarithmic.

    table: columns `run`, `tokens`, `ms` (the median), `low`, `high`.
    """
    axis = decades([*table["low"], *table["high"]])
    base = alt.Chart().encode(
        _lengths(FEW[0], MANY),
        _colour("run", list(table["run"].unique())),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("tokens:Q"),
            *(alt.Tooltip(f"{name}:Q", format=".3~r") for name in ("ms", "low", "high")),
        ],
    )
    title = "milliseconds (median and range)"
    return alt.layer(
        base.mark_line(point=_POINTS).encode(alt.Y("ms:Q", title=title, **axis)),
        base.mark_rule().encode(alt.Y("low:Q", title=title, **axis), alt.Y2("high")),
        data=table,
        height=320,
        config=_WHOLE_LABELS,
    )


def _lengths(first: int, marks: Sequence[int]) -> alt.X:
    """An axis of sentence lengths, from `first` to the last mark."""
    return alt.X(
        "tokens:Q",
        title="tokens in the sentence",
        scale=alt.Scale(type="log", base=2, domain=[first, marks[-1]]),
        axis=alt.Axis(values=marks, format="d"),
    )


def _shares(table: pd.DataFrame, x: alt.X, tooltip: list[str]) -> alt.TopLevelMixin:
    """Lines of `share` over `x`, and a dashed line at an equal share."""
    equal = alt.Chart(pd.DataFrame({"share": [1]})).mark_rule(strokeDash=[3, 3], color=INK)
    lines = alt.Chart().mark_line(point=_POINTS)
    return alt.layer(
        equal.encode(alt.Y("share:Q")),
        lines.encode(
            x,
            alt.Y("share:Q", title="influence (1 = equal share)", **decades(table["share"])),
            _colour("network", [GRU, ATTENTION]),
            tooltip=[
                *map(alt.Tooltip, tooltip),
                alt.Tooltip("network:N"),
                alt.Tooltip("share:Q", format=".4~r"),
            ],
        ),
        data=table,
        height=320,
        config=_WHOLE_LABELS,
    )


def _colour(field: str, names: list[str]) -> alt.Color:
    return alt.Color(
        field,
        type="nominal",
        title=None,
        scale=alt.Scale(domain=names, range=SERIES[: len(names)]),
        legend=alt.Legend(
            orient="top",
            symbolType="stroke",
            symbolStrokeWidth=3,
            columns=1 if len(names) == 2 else 2,  # the two long names don't fit into one row
        ),
    )
