"""One pair of tokens in both heads of the page "Side by side", and where the right model has it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pretrained.tokenization.alignment import aligned
from serving.heads import HeadChoice, HeadId
from serving.runs import Run
from serving.token_text import isolated

Cell = tuple[int, int]


def on_the_right(runs: Sequence[Run], pair: Cell) -> Cell | None:
    """The right tokens that hold the characters of the left pair, of several the first; or None."""
    partners = {
        token: unit.b[0]
        for unit in aligned(runs[0].tokens, runs[1].tokens).units
        for token in unit.a
    }
    query, key = (partners.get(token) for token in pair)
    return None if query is None or key is None else (query, key)


def on_the_left(runs: Sequence[Run], pair: Cell) -> Cell | None:
    """The left tokens that hold the characters of the right pair, of several the first; or None."""
    return on_the_right((runs[1], runs[0]), pair)


def take(which: str, runs: Sequence[Run], cell: Cell | None) -> None:
    """Choose the pair of a cell that was clicked on one side, if the left text has that pair."""
    pair = cell if cell is None or which == "a" else on_the_left(runs, cell)
    if pair is not None and max(pair) < len(runs[0].tokens):
        st.session_state["side_by_side_query"], st.session_state["side_by_side_key"] = pair


def strongest_head(run: Run, pair: Cell) -> HeadId:
    """The head of a model that gives a pair the largest weight."""
    weights = run.weights[:, :, pair[0], pair[1]]
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return HeadId(layer, head)


def line(which: str) -> DeltaGenerator:
    """The place, above the map of one side, in which `show` writes."""
    return st.container(
        horizontal=True, vertical_alignment="center", key=f"side_by_side_{which}_line"
    )


def show(
    places: Sequence[DeltaGenerator], runs: Sequence[Run], heads: Sequence[HeadChoice], pair: Cell
) -> Cell | None:
    """What both heads give the pair, and a button for the right model's head that gives it most.

    The result is the pair in the right text.
    """
    query, key = (isolated(runs[0].tokens.labels[token]) for token in pair)
    weight = runs[0].weights[heads[0].layer, heads[0].head][pair]
    places[0].text(f"Framed: “{query}” gives {weight:.3f} of its attention to “{key}”.")
    right, run, choice = on_the_right(runs, pair), runs[1], heads[1]
    if right is None:
        places[1].text("The right side has no token with a partner in this pair.")
        return None
    if run.causal and right[1] > right[0]:
        places[1].text(f"“{query}” cannot look at “{key}” here: {run.title} does not look ahead.")
        return right
    best = strongest_head(run, right)
    weight, most = (
        run.weights[layer, head][right]
        for layer, head in ((choice.layer, choice.head), (best.layer, best.head))
    )
    places[1].text(f"The same pair: {weight:.3f}.", width="content")
    places[1].button(
        f"Most in {best}: {most:.3f}",
        type="tertiary",
        icon=":material/search:",
        key="side_by_side_find",
        disabled=best == HeadId(choice.layer, choice.head),
        on_click=_open,
        args=(best,),
        help="The head of this model that gives the framed pair the largest weight.",
    )
    return right


def _open(head: HeadId) -> None:
    st.session_state["side_by_side_b_layer"] = head.layer
    st.session_state["side_by_side_b_head"] = head.head
