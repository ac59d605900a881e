"""The charts of the page "Who sets the weights"."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from pages.learn.who_sets_the_weights.numbers import AFTER, BEFORE, CHANGE
from ui.charts import style
from ui.charts.bars import paired_bars

COLOURS = {
    "W_q": style.QUERIES,
    "W_k": style.KEYS,
    "W_v": style.VALUES,
    "W_o": style.ATTENTION,
    "feed-forward": style.FEED_FORWARD,
    "norms": style.STREAM,
    "biases": style.PURPLE,
}
HEIGHT = 300


def loss_chart(table: pd.DataFrame) -> alt.Chart:
    """Chart the loss before the first step and after each step, from `numbers.losses`."""
    scale = alt.Scale(domain=[0, 1.1 * float(table["loss"].max())])  # leaves a margin
    return (
        alt.Chart(table, height=150)
        .mark_line(color=style.BLUE, point=alt.OverlayMarkDef(size=60))
        .encode(
            alt.X("step:O", title="training step", axis=alt.Axis(labelAngle=0)),
            alt.Y("loss:Q", title="loss", scale=scale, axis=alt.Axis(tickCount=4)),
            tooltip=[alt.Tooltip("step:O"), alt.Tooltip("loss:Q", format=".4f")],
        )
    )


def changes_chart(table: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart the relative change of each kind of matrix by layer, from `numbers.parts`."""
    in_layers = table[(table["layer"] >= 0) & (table[CHANGE] > 0) & np.isfinite(table[CHANGE])]
    kinds = [kind for kind in COLOURS if kind in set(in_layers["kind"])]
    return (
        alt.Chart(in_layers.rename(columns={CHANGE: "moved"}), height=HEIGHT)
        .mark_line(point=alt.OverlayMarkDef(size=25))
        .encode(
            alt.X(
                "layer:Q",
                title="layer",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(nice=False),
            ),
            alt.Y(
                "moved:Q",
                title=CHANGE,
                **style.decades(in_layers[CHANGE].tolist()),
            ),
            alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds]),
                legend=alt.Legend(
                    orient="top", columns=3, symbolType="stroke", symbolStrokeWidth=3
                ),
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="matrix"),
                alt.Tooltip("layer:Q"),
                alt.Tooltip("moved:Q", title="change ÷ length", format=".3~r"),
                alt.Tooltip("gradient:Q", title="length of the gradient", format=".3~r"),
            ],
        )
    )


def positions_chart(table: pd.DataFrame) -> alt.Chart:
    """Chart each position's loss before and after training, from `numbers.positions`."""
    return paired_bars(
        table[["position", "next token", BEFORE, AFTER]],
        (BEFORE, AFTER),
        list(table["next token"]),
        of="next token",
        kind="when",
        value="loss",
        tooltip=[
            alt.Tooltip("position:O"),
            alt.Tooltip("next token:N"),
            alt.Tooltip("when:N"),
            alt.Tooltip("loss:Q", format=".4f"),
        ],
        height=300,
    )
