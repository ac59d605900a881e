"""The open head of the Heads page: its map at any step, its lines, and one token pair."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.compare.heads import stages, values
from pages.compare.heads.choices import DrawingOptions
from pages.compare.heads.values import MapOptions
from serving.heads import HeadId, all_heads
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, DivergingScale, Map, clicked_cell, heatmap
from ui.canvas.lines import lines
from ui.canvas.tensors import Panel, Provenance, provenance, tensors
from ui.text.isolated import isolated
from ui.widgets.head_choice import HeadChoice
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

_MAP = "heads_map"
MAX_OVERLAID = 5
HIDDEN_TEXT = "hidden or too small"


def show_map(
    run: Run,
    choice: HeadChoice,
    options: MapOptions,
    drawing: DrawingOptions,
    stage: str,
    selected: tuple[int, int],
) -> None:
    """Show the head's map at a step. A click on a cell selects its query and key."""
    layer, head = choice.layer, choice.head
    n = len(run.tokens)

    def take() -> None:
        cell = clicked_cell(_MAP)
        if cell is not None and max(cell) < n:
            st.session_state["heads_query"], st.session_state["heads_key"] = cell

    if stage == stages.WEIGHTS:
        unit = values.UNITS[options.measure]
        title = f"{choice.title}: {options.measure}"
        array, scale = picture(run, choice, options, drawing)
    else:
        unit, title = stages.UNITS[stage], f"{choice.title}: {stage}"
        array = stages.stage(run, layer, head, stage)
        scale = DivergingScale(float(np.abs(array[np.isfinite(array)]).max()))
        array = values.with_gaps(array, options.hidden)
    head_map = Map(
        array,
        run.tokens.labels,
        title=title,
        causal=run.causal and stage != stages.SCORES,
        scale=scale,
        value_name=unit,
        hidden_text=HIDDEN_TEXT,
        selected=selected,
    )
    heatmap(head_map, key=_MAP, on_cell=take)


def picture(
    run: Run, choice: HeadChoice, options: MapOptions, drawing: DrawingOptions
) -> tuple[np.ndarray, ColourScale | DivergingScale]:
    """A head's values (T, S) as drawn, with gaps, and their color scale."""
    all_values = values.values(run, options)
    own = all_values[choice.layer, choice.head]
    largest = drawing.largest(all_values, own)
    gaps = values.with_gaps(own, options.hidden, drawing.threshold * largest)
    return gaps, ColourScale(largest, drawing.square_root)


def show_pair(run: Run, choice: HeadChoice, selected: tuple[int, int]) -> None:
    """Show a query and key as vectors, their product, and the steps to the weight."""
    query, key = selected
    pair = stages.pair(run, choice.layer, choice.head, query, key)
    labels = [isolated(run.tokens.labels[index]) for index in (query, key)]
    st.text(f"Query {query} “{labels[0]}” and key {key} “{labels[1]}” in {choice.title}")
    vectors, steps = st.columns([3, 2], gap="large")
    with vectors:
        tensors(pair_panels(pair), key="heads_pair")
    with steps:
        plain_table(pair.numbers, "From the score to the weight", {"value": "{:.6g}"})


def pair_panels(pair: stages.QueryKeyPair) -> list[Panel]:
    """The two vectors, their product element by element, and its sum."""
    both = np.stack([pair.q, pair.k])
    sizes = {"v": 2, "c": len(pair.q)}
    operands = both.T[None]  # (1, D, 2): one pair of numbers per column
    return [
        Panel("query and key", both, ("vector", "column"), rows=("q", "k"), identity="both"),
        Panel(
            "their product, column by column",
            pair.product[None],
            ("product", "column"),
            rows=("q ⊙ k",),
            provenance=Provenance("product", "vc->pc", ("both",), sizes, operands[:, :, None], 1),
        ),
        Panel(
            "the sum of the products",
            np.array([[pair.score]]),
            ("score", "sum"),
            rows=("q · k",),
            provenance=Provenance(
                "product",
                "vc->ps",
                ("both",),
                sizes,
                operands[:, None, : provenance.TERMS_WRITTEN],
                len(pair.q),
            ),
        ),
    ]


def show_lines(run: Run, choice: HeadChoice, options: MapOptions) -> None:
    """Show the head as lines between two columns of tokens, with other heads overlaid."""
    open_one = str(HeadId(choice.layer, choice.head))
    names = all_heads(*run.weights.shape[:2])
    others = linked(
        st.multiselect,
        "Overlay other heads",
        [name for name in names if name != open_one],
        max_selections=MAX_OVERLAID,
        filter_mode="prefix",
        select_all=False,  # otherwise Enter after "L3H1" also selects L3H10 and L3H11
        key="heads_overlay",
    )
    chosen = [open_one, *others]
    places = [HeadId.parse(name) for name in chosen]
    all_values = values.values(run, options)
    stack = np.stack([all_values[place.layer, place.head] for place in places])
    lines(
        values.with_gaps(stack, options.hidden),
        chosen,
        run.tokens.labels,
        title=f"{options.measure.capitalize()} from query (left) to key (right)",
        causal=run.causal,
        value=values.UNITS[options.measure],
        key="heads_lines",
    )
