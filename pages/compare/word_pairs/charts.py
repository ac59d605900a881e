"""Altair charts of the page "Word pairs": every head's attention to two words.

Words are user input, so they appear only in table columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from pages.compare.word_pairs.search import Search
from ui.charts.style import BLUE, GREY, INK, PAPER, VERMILLION, WEIGHTS

DARK = "#1d2730"
PREFERENCES = {1: "prefers A", 0: "no preference", -1: "prefers B"}
NAMED = 3  # top heads of a grid, marked with their rank
MANY_LAYERS = 12  # rows are lower in models with more layers


def charts(result: Search) -> Mapping[str, partial[Any]]:
    """All charts of the page by name, each bound to its tables."""
    largest = float(max(result.weights.max(), result.other_weights.max(), 1e-6))
    best = float(result.weights.max())
    return {
        "heads_A": partial(
            grid,
            weights(result.weights),
            words(f"A: {result.query.label} → {result.key.label}"),
            largest,
        ),
        "heads_B": partial(
            grid,
            weights(result.other_weights),
            words(f"B: {result.query.label} → {result.other.label}"),
            largest,
        ),
        "a_or_b": partial(scatter, preferences(result), largest),
        "yardstick": partial(histogram, pairs(result), best),
    }


def weights(values: np.ndarray) -> pd.DataFrame:
    """One row per head: `layer`, `head`, `weight`, and `place`, the rank of the top heads."""
    layers, heads = np.indices(values.shape)
    flat = values.ravel().astype(float)
    places = np.full(flat.size, "", dtype=object)
    for place, index in enumerate(np.argsort(-flat, kind="stable")[:NAMED], start=1):
        if flat[index] > 0:
            places[index] = str(place)
    return pd.DataFrame(
        {"layer": layers.ravel(), "head": heads.ravel(), "weight": flat, "place": places}
    )


def words(heading: str) -> pd.DataFrame:
    """The heading of a grid as a column `words`: query word → key word."""
    return pd.DataFrame({"words": [heading]})


def preferences(result: Search) -> pd.DataFrame:
    """One row per head: `layer`, `head`, its weights on `A` and `B`, and which it `prefers`."""
    layers, heads = np.indices(result.weights.shape)
    return pd.DataFrame(
        {
            "layer": layers.ravel(),
            "head": heads.ravel(),
            "A": result.weights.ravel().astype(float),
            "B": result.other_weights.ravel().astype(float),
            "prefers": [PREFERENCES[int(sign)] for sign in result.preference.ravel()],
        }
    )


def pairs(result: Search) -> pd.DataFrame:
    """Histogram of the other pairs: number of `pairs` whose largest weight is in `from` .. `to`."""
    counts, edges = np.histogram(result.other_pairs, bins=20, range=(0.0, 1.0))
    return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "pairs": counts})


def grid(table: pd.DataFrame, heading: pd.DataFrame, largest: float) -> alt.TopLevelMixin:
    """One cell per head, layers down and heads across; the top three show their rank.

    table, heading: from `weights` and `words`. largest: upper end of the color scale.
    """
    axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False, domain=False)
    legend = alt.Legend(
        orient="bottom",
        title="weight (1, 2, 3: the top three heads)",
        titleLimit=320,
        gradientLength=180,
        values=[0, largest / 2, largest],
        format=".3f",
    )
    colors = alt.Scale(domain=[0, largest], range=WEIGHTS, interpolate="rgb")
    heads = alt.Chart().encode(
        alt.X("head:O", title="head", axis=axis),
        alt.Y("layer:O", title="layer", axis=axis),
        tooltip=[
            alt.Tooltip("layer:O"),
            alt.Tooltip("head:O"),
            alt.Tooltip("weight:Q", format=".5f"),
        ],
    )
    cells = heads.mark_rect(stroke=PAPER, strokeWidth=1).encode(
        alt.Color("weight:Q", scale=colors, legend=legend)
    )
    # in both themes, large weights are bright and small ones dark
    on_large = {"test": alt.datum.weight > largest / 2, "value": DARK}
    places = heads.mark_text(fontWeight="bold", fontSize=13).encode(
        alt.Text("place:N"), alt.ColorValue("#ffffff", condition=[on_large])
    )
    above = (
        alt.Chart(heading)
        .mark_text(align="left", baseline="bottom", fontSize=14, fontWeight="bold", color=INK)
        .encode(alt.Text("words:N"), x=alt.PositionValueDef(0), y=alt.PositionValueDef(-14))
    )
    n_layers = table["layer"].nunique()
    return alt.layer(
        cells,
        places,
        above,
        data=table,
        height=alt.Step(16 if n_layers > MANY_LAYERS else 30),
        description="The weight in every layer and head",
    )


def scatter(table: pd.DataFrame, largest: float) -> alt.TopLevelMixin:
    """One point per head, weight on A across and on B up, with a diagonal of equal weights."""
    names = list(PREFERENCES.values())
    alike = pd.DataFrame({"A": [0.0, largest], "B": [0.0, largest]})
    weight = alt.Scale(domain=[0, largest], nice=True)
    x = alt.X("A:Q", title="weight on A", scale=weight)
    y = alt.Y("B:Q", title="weight on B", scale=weight)
    legend = alt.Legend(orient="top")
    colors = alt.Scale(domain=names, range=[BLUE, GREY, VERMILLION])
    shapes = alt.Scale(domain=names, range=["circle", "square", "triangle-up"])
    line = alt.Chart(alike).mark_line(color=INK, strokeWidth=1, strokeDash=[4, 4]).encode(x, y)
    points = (
        alt.Chart(table)
        .mark_point(filled=True, opacity=0.9, size=55)
        .encode(
            x,
            y,
            alt.Color("prefers:N", title=None, legend=legend, scale=colors),
            alt.Shape("prefers:N", title=None, legend=legend, scale=shapes),
            tooltip=[
                alt.Tooltip("layer:O"),
                alt.Tooltip("head:O"),
                alt.Tooltip("A:Q", title="weight on A", format=".5f"),
                alt.Tooltip("B:Q", title="weight on B", format=".5f"),
            ],
        )
    )
    return alt.layer(
        line, points, height=340, description="Each point is a head, with its weight on A and on B"
    )


def histogram(table: pd.DataFrame, mine: float) -> alt.TopLevelMixin:
    """Histogram of the largest weights of all other pairs, with a line for A.

    table: from `pairs`. mine: the largest weight on A.
    """
    title, share = "largest weight over all heads", alt.Scale(domain=[0, 1])
    x = alt.X("from:Q", title=title, scale=share)
    bars = (
        alt.Chart(table)
        .mark_bar(color=GREY)
        .encode(
            alt.X("from:Q", title=title, scale=share, bin="binned"),
            alt.X2("to"),
            alt.Y("pairs:Q", title="pairs of words"),
            tooltip=[
                alt.Tooltip("from:Q", format=".2f"),
                alt.Tooltip("to:Q", format=".2f"),
                alt.Tooltip("pairs:Q"),
            ],
        )
    )
    best_weight = alt.Chart(pd.DataFrame({"from": [mine], "is": ["A"]}))
    rule = best_weight.mark_rule(color=VERMILLION, strokeWidth=3).encode(x)
    left = mine > 0.1  # enough space for the letter
    letter = best_weight.mark_text(
        color=INK,
        fontWeight="bold",
        fontSize=14,
        y=10,
        align="right" if left else "left",
        dx=-8 if left else 8,
    ).encode(x, alt.Text("is:N"))
    return alt.layer(
        bars,
        rule,
        letter,
        height=340,
        description="Largest weight over all heads, for every other pair of words",
    )
