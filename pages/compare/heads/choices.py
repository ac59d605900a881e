"""The controls of the Heads page: what is read, in which order, in which colours."""

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
class Drawing:
    """One colour scale for all heads or one for each; `threshold` is a share of that scale."""

    one_scale: bool
    square_root: bool
    threshold: float
    large: bool

    def largest(self, all_values: np.ndarray, head: np.ndarray) -> float:
        """The value of the brightest colour: the largest of all values, or of one head's values."""
        values = all_values if self.one_scale else head
        return float(values.max())


@dataclass(frozen=True)
class Order:
    """Which heads are drawn, and in which order.

    heads: their numbers; None draws the grid of all heads. captions: the text below each head.
    explanation: how to read the order, in Markdown without any text of a visitor.
    """

    heads: list[int] | None
    captions: list[str]
    explanation: str


def reading(run: Run) -> MapOptions:
    """The controls that choose what is measured and which keys are left out."""
    measure = linked(
        st.selectbox,
        "Measure",
        MEASURES,
        key="heads_measure",
        help="A weight α says how much of a value vector v a query takes. The contribution "
        "‖α v W_O‖ is the length of what the head then writes: small where the value is short, "
        "however large the weight. The bias of the output projection is left out.",
    )
    left_out = linked(
        st.pills,
        "Leave out keys",
        noise.KINDS,
        selection_mode="multi",
        key="heads_hide",
        help="Not drawn, where the text has such tokens. The model itself saw them.",
    )
    renormalise = linked(
        st.toggle,
        "Renormalise the rest",
        key="heads_renormalise",
        help="Divide what is left of each row by its sum, so that it adds up to 1 again.",
    )
    hidden = noise.hidden(run.tokens, left_out)
    return MapOptions(measure or WEIGHTS, hidden, renormalise and bool(hidden))


def drawing() -> Drawing:
    """The controls that choose how values become pictures."""
    scale = linked(st.selectbox, "Colour scale", (OWN_SCALE, ONE_SCALE), key="heads_scale")
    root = linked(
        st.toggle,
        "Show small values",
        True,
        key="heads_root",
        help="Colours by the square root of the value instead of the value.",
    )
    large = linked(st.toggle, "Large tiles", key="heads_large", help="In a frame that scrolls.")
    threshold = linked(
        st.slider, "Hide values below (% of the scale)", 0, 50, 0, key="heads_threshold"
    )
    return Drawing(scale == ONE_SCALE, root, threshold / 100, large)


def order(table: pd.DataFrame) -> Order:
    """Which heads are drawn, sorted by a statistic of the table."""
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
        explanation = "Each row is a layer, each column a head; both count from 0, as in the code."
        return Order(None, [], explanation)
    statistic = by_title[title]
    explanation = f"**{statistic.title}**: {statistic.definition}"
    column = table[statistic.name].to_numpy()
    heads = sorted_heads(column, rising=rising)
    captions = ["" if np.isnan(value) else f"{value:.2f}" for value in column]
    return Order(heads if count == EVERY else heads[:count], captions, explanation)


def sorted_heads(column: np.ndarray, *, rising: bool) -> list[int]:
    """Numbers of the heads by their value, the largest first; those without a value come last."""
    keyed = np.where(np.isnan(column), np.inf, column if rising else -column)
    return [int(head) for head in np.argsort(keyed, kind="stable")]
