"""Charts of "How a head came to be": scores and losses over the training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from ui.charts import style

HEIGHT = 270
_COLORS = (*style.SERIES, style.GREY)
_MARKS = (0, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_LEAST_TOP = 0.4  # the score axis extends at least to this value, so that small scores look small
_SYMLOG_CONSTANT = 25  # the step axis is roughly linear below this step, so it can start at 0


def scores_chart(table: pd.DataFrame, names: Sequence[str], step: int) -> alt.TopLevelMixin:
    """One line per score, from `history_numbers.by_step`.

    names: all score names, so that each keeps its color in models that lack others. step: the step
    to mark.
    """
    present = set(table["score"])
    top = max(float(table["value"].max()), _LEAST_TOP)
    lines = _lines(
        "score",
        {name: color for name, color in zip(names, _COLORS, strict=True) if name in present},
        alt.Y("value:Q", title="score", scale=alt.Scale(domain=[0, top], nice=True)),
        [alt.Tooltip("head:N"), alt.Tooltip("value:Q", format=".3f")],
        int(table["step"].max()),
    )
    return alt.layer(lines, _mark(step), data=table, height=HEIGHT)


def loss_chart(table: pd.DataFrame, step: int, begins: int | None) -> alt.TopLevelMixin:
    """One line per loss, from `history_numbers.losses`.

    step: the step to mark. begins: the step at which in-context learning begins.
    """
    lines = _lines(
        "loss of",
        dict(zip(dict.fromkeys(table["loss of"]), _COLORS, strict=False)),
        alt.Y("loss:Q", title="loss (nats per token)", scale=alt.Scale(zero=False)),
        [alt.Tooltip("loss:Q", format=".3f")],
        int(table["step"].max()),
    )
    layers = [lines, _mark(step)]
    if begins is not None:
        layers.append(_mark(begins, style.VERMILLION, "in-context learning begins"))
    return alt.layer(*layers, data=table, height=HEIGHT)


def _lines(
    of: str, colors: Mapping[str, str], y: alt.Y, tooltips: Sequence[alt.Tooltip], last: int
) -> alt.Chart:
    marks = [mark for mark in _MARKS if mark <= last]
    legend = alt.Legend(orient="top", columns=2, labelLimit=240, rowPadding=0)
    return (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=25))
        .encode(
            alt.X(
                "step:Q",
                title="training step",
                scale=alt.Scale(
                    type="symlog", constant=_SYMLOG_CONSTANT, domain=[0, last], nice=False
                ),
                axis=alt.Axis(values=marks, format=",d", labelOverlap="greedy"),
            ),
            y,
            alt.Color(
                f"{of}:N",
                title=None,
                scale=alt.Scale(domain=[*colors], range=[*colors.values()]),
                legend=legend,
            ),
            tooltip=[alt.Tooltip("step:Q", format=",d"), alt.Tooltip(f"{of}:N"), *tooltips],
        )
    )


def _mark(step: int, color: Any = style.INK, label: str = "selected step") -> alt.Chart:
    return (
        alt.Chart(pd.DataFrame({"step": [step], "is": [label]}))
        .mark_rule(color=color, strokeDash=[4, 4], strokeWidth=1.5)
        .encode(
            alt.X("step:Q", title="training step"),
            tooltip=[alt.Tooltip("is:N", title="line"), alt.Tooltip("step:Q", format=",d")],
        )
    )
