"""The chart of "Our core next to transformers" on the page "Side by side"."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from ui.charts.style import BLUE, MARKS, VERMILLION
from ui.text.formatting import difference

WEIGHTS, HIDDEN = "attention weights", "hidden states"


def long_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row per layer and kind of tensor (`of`), with its largest `difference`.

    table: from `reference.Reference`.
    """
    columns = {"max |Δ weights|": WEIGHTS, "max |Δ hidden|": HIDDEN}
    renamed = table[["layer", *columns]].rename(columns=columns)
    return renamed.melt("layer", var_name="of", value_name="difference")


def differences(table: pd.DataFrame, largest: float) -> alt.Chart:
    """Both differences by layer on a logarithmic axis, with 0 below the powers of ten.

    table: from `long_table`. largest: a value that the axis must include.
    """
    powers = range(-7, max(-4, math.ceil(math.log10(largest or 1e-4))) + 1)
    names = [WEIGHTS, HIDDEN]
    colors = alt.Scale(domain=names, range=[BLUE, VERMILLION])
    shapes = alt.Scale(domain=names)  # the same domain as the colors merges both legends
    legend = alt.Legend(orient="top")
    y = alt.Y(
        "difference:Q",
        title="largest |difference|",
        # symlog is logarithmic above its constant and can show 0
        scale=alt.Scale(type="symlog", constant=1e-8, domain=[0, 10.0 ** powers[-1]]),
        axis=alt.Axis(
            values=[0, *(10.0**power for power in powers)],
            labelExpr=MARKS,
        ),
    )
    return (
        alt.Chart(table.assign(shown=table["difference"].map(difference)), height=260)
        .mark_line(point=alt.OverlayMarkDef(size=50), strokeWidth=1.5)
        .encode(
            alt.X("layer:Q", title="layer", axis=alt.Axis(tickMinStep=1)),
            y,
            alt.Color("of:N", title=None, legend=legend, scale=colors),
            alt.Shape("of:N", title=None, legend=legend, scale=shapes),
            tooltip=[
                alt.Tooltip("of:N"),
                alt.Tooltip("layer:Q"),
                alt.Tooltip("shown:N", title="largest difference"),
            ],
        )
    )
