"""Controls of the Heads page: measure, hidden keys, order and colors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.compare.heads import noise, statistics
from pages.compare.heads.values import MEASURES, WEIGHTS, MapOptions
from serving.runs import Run
from ui.widgets.linked import linked

LAYERS, EVERY = "layer and head", "all"
OWN_SCALE, ONE_SCALE = "each head its own", "one for all heads"
COUNTS = (6, 12, 24, 48, EVERY)


@dataclass(frozen=True)
class DrawingOptions:
    """How maps are drawn: one shared color scale or one per head, and a `threshold` (0 to 1)."""

    one_scale: bool
    square_root: bool
    threshold: float
    large: bool

    def largest(self, all_values: np.ndarray, head: np.ndarray) -> float:
        """The largest value of the color scale, over all heads or within one head."""
        values = all_values if self.one_scale else head
        return float(values.max())


@dataclass(frozen=True)
class Order:
    """Which heads are drawn, and in which order.

    heads: their indices, or None for the grid of all heads. captions: the text below each head.
    explanation: Markdown that explains the order; it contains no user input.
    """

    heads: list[int] | None
    captions: list[str]
    explanation: str


def map_options(run: Run) -> MapOptions:
    """Controls for the measure and the keys to leave out."""
    measure = linked(
        st.selectbox,
        "Measure",
        MEASURES,
        key="heads_measure",
        help="A weight α is the share of a value vector v that a query takes. The contribution "
        "‖α v W_O‖ is the length of the resulting output. If the value is short, the contribution "
        "is small even with a large weight. The bias of the output projection isn't included.",
    )
    left_out = linked(
        st.pills,
        "Leave out keys",
        noise.KINDS,
        selection_mode="multi",
        key="heads_hide",
        help="These keys aren't drawn. The model itself still used them.",
    )
    renormalise = linked(
        st.toggle,
        "Renormalize the rest",
        key="heads_renormalise",
        help="Divide the remaining weights of each row by their sum, so that they add up to 1.",
    )
    hidden = noise.positions_of_kinds(run.tokens, left_out)
    return MapOptions(measure or WEIGHTS, hidden, renormalise and bool(hidden))


def drawing_options() -> DrawingOptions:
    """Controls for colors, tile size and threshold."""
    scale = linked(st.selectbox, "Color scale", (OWN_SCALE, ONE_SCALE), key="heads_scale")
    root = linked(
        st.toggle,
        "Show small values",
        True,
        key="heads_root",
        help="Color by the square root of each value.",
    )
    large = linked(
        st.toggle, "Large tiles", key="heads_large", help="Larger tiles, in a scrolling frame."
    )
    threshold = linked(
        st.slider, "Hide values below (% of the scale)", 0, 50, 0, key="heads_threshold"
    )
    return DrawingOptions(scale == ONE_SCALE, root, threshold / 100, large)


def order(table: pd.DataFrame) -> Order:
    """Controls for which heads are drawn, sorted by a statistic of the table."""
    by_title = {s.title: s for s in statistics.definitions()}
    title = linked(
        st.selectbox,
        "Order",
        (LAYERS, *by_title),
        key="heads_sort",
        help="  \n".join(f"**{s.title}**: {s.definition}" for s in by_title.values()),
    )
    by_layer = title == LAYERS
    rising = linked(st.toggle, "Smallest first", key="heads_rising", disabled=by_layer)
    count = linked(
        st.select_slider, "Heads to show", COUNTS, EVERY, key="heads_count", disabled=by_layer
    )
    if by_layer:
        explanation = "Each row is a layer and each column a head, both counted from 0."
        return Order(None, [], explanation)
    statistic = by_title[title]
    explanation = f"**{statistic.title}**: {statistic.definition}"
    column = table[statistic.name].to_numpy()
    heads = sorted_heads(column, rising=rising)
    captions = ["" if np.isnan(value) else f"{value:.2f}" for value in column]
    return Order(heads if count == EVERY else heads[:count], captions, explanation)


def sorted_heads(column: np.ndarray, *, rising: bool) -> list[int]:
    """Head indices sorted by value, largest first unless `rising`; NaN comes last."""
    keyed = np.where(np.isnan(column), np.inf, column if rising else -column)
    return [int(head) for head in np.argsort(keyed, kind="stable")]
