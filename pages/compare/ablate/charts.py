"""The charts of the page "Ablate": tables in, Altair charts out. Tokens stand in columns only."""

from __future__ import annotations

import altair as alt
import pandas as pd

from pretrained.tokenization.tokens import numbered
from ui.charts.style import BLUE, VERMILLION

BEFORE, AFTER = "all heads on", "heads off"


def before_and_after(table: pd.DataFrame) -> pd.DataFrame:
    """Two rows a token of `effect.predictions_table`: `token`, `which` run, `probability`, `place`.

    table: `token`, and the two probabilities `p before` and `p after`.

    Different tokens may print alike: a second one carries its count, such as "the₂".
    """
    names = [token for token in numbered(list(table["token"])) for _ in (BEFORE, AFTER)]
    probabilities = table[["p before", "p after"]].to_numpy(float).ravel()
    which = [BEFORE, AFTER] * len(table)
    places = range(len(names))
    return pd.DataFrame(
        {"token": names, "which": which, "probability": probabilities, "place": places}
    )


def predictions(table: pd.DataFrame) -> alt.Chart:
    """Two bars a token: its probability before and after; table as `before_and_after`."""
    colours = alt.Scale(domain=[BEFORE, AFTER], range=[BLUE, VERMILLION])
    every_token = alt.Axis(labelLimit=140, labelOverlap=False, labelFontSize=13)
    return (
        alt.Chart(table, height=400)
        .mark_bar()
        .encode(
            # without an order a chart that is drawn anew keeps that of the tokens before
            alt.Y(
                "token:N",
                sort=alt.EncodingSortField("place", op="min"),
                title="next token",
                axis=every_token,
            ),
            alt.YOffset("which:N", sort=[BEFORE, AFTER]),
            alt.X("probability:Q", title="probability", scale=alt.Scale(zero=True)),
            alt.Color("which:N", title=None, legend=alt.Legend(orient="top"), scale=colours),
            tooltip=[
                alt.Tooltip("token:N"),
                alt.Tooltip("which:N", title="with"),
                alt.Tooltip("probability:Q", format=".3r"),
            ],
        )
    )
