"""Altair charts of the page "Ablate".

Tokens are user input, so they appear only in table columns.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from pretrained.tokenization.tokens import numbered
from ui.charts.style import BLUE, VERMILLION

BEFORE, AFTER = "all heads on", "heads off"


def long_table(table: pd.DataFrame) -> pd.DataFrame:
    """Two rows per token: `token`, `which` (the run), `probability`, `place` (in the chart).

    table: `token`, `p before` and `p after`, as in `effect.predictions_table`. Different tokens may
    look the same, so repeated labels get a subscript, such as "the₂".
    """
    names = [token for token in numbered(list(table["token"])) for _ in (BEFORE, AFTER)]
    probabilities = table[["p before", "p after"]].to_numpy(float).ravel()
    which = [BEFORE, AFTER] * len(table)
    places = range(len(names))
    return pd.DataFrame(
        {"token": names, "which": which, "probability": probabilities, "place": places}
    )


def predictions(table: pd.DataFrame) -> alt.Chart:
    """Two bars per token, its probability before and after. Table: `long_table`."""
    colors = alt.Scale(domain=[BEFORE, AFTER], range=[BLUE, VERMILLION])
    every_token = alt.Axis(labelLimit=140, labelOverlap=False, labelFontSize=13)
    return (
        alt.Chart(table, height=400)
        .mark_bar()
        .encode(
            # without a sort order, a redrawn chart keeps the previous tokens' order
            alt.Y(
                "token:N",
                sort=alt.EncodingSortField("place", op="min"),
                title="next token",
                axis=every_token,
            ),
            alt.YOffset("which:N", sort=[BEFORE, AFTER]),
            alt.X("probability:Q", title="probability", scale=alt.Scale(zero=True)),
            alt.Color("which:N", title=None, legend=alt.Legend(orient="top"), scale=colors),
            tooltip=[
                alt.Tooltip("token:N"),
                alt.Tooltip("which:N", title="with"),
                alt.Tooltip("probability:Q", format=".3r"),
            ],
        )
    )
