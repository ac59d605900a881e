"""One pair of tokens in both heads of the page "Side by side", and where the right model has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.compare.side_by_side.comparison import Cell
from pretrained.tokenization.alignment import Unit, aligned
from serving.heads import HeadChoice, HeadId
from serving.runs import Run
from serving.token_text import isolated


def on_the_right(runs: Sequence[Run], pair: Cell) -> Cell | None:
    """The right tokens that hold the characters of the left pair, of several the first; or None."""
    units = _units(runs, pair)
    return None if units is None else (units[0].b[0], units[1].b[0])


def _units(runs: Sequence[Run], pair: Cell) -> tuple[Unit, Unit] | None:
    """The shared units that the query and the key of the left text belong to, if both have one."""
    units = {
        token: unit for unit in aligned(runs[0].tokens, runs[1].tokens).units for token in unit.a
    }
    query, key = (units.get(token) for token in pair)
    return None if query is None or key is None else (query, key)


def on_the_left(runs: Sequence[Run], pair: Cell) -> Cell | None:
    """The left tokens that hold the characters of the right pair, of several the first; or None."""
    return on_the_right((runs[1], runs[0]), pair)


def take(which: str, runs: Sequence[Run], cell: Cell | None) -> None:
    """Choose the pair of a cell that was clicked on one side, if the left text has that pair."""
    pair = cell if cell is None or which == "a" else on_the_left(runs, cell)
    if pair is not None and max(pair) < len(runs[0].tokens):
        st.session_state["side_by_side_query"], st.session_state["side_by_side_key"] = pair


def unit_weights(run: Run, queries: Sequence[int], keys: Sequence[int]) -> np.ndarray:
    """What each head (L, H) gives from some tokens to others.

    Summed over the keys and averaged over the queries, as in the map of shared units.
    """
    weights = run.weights[:, :, list(queries)][..., list(keys)]
    return weights.sum(axis=-1).mean(axis=-1)


def strongest_head(weights: np.ndarray) -> HeadId:
    """The head with the largest of the weights (L, H)."""
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return HeadId(layer, head)


def line(which: str) -> DeltaGenerator:
    """The place, above the map of one side, in which `show` writes."""
    return st.container(
        horizontal=True, vertical_alignment="center", key=f"side_by_side_{which}_line"
    )


def show(
    places: Sequence[DeltaGenerator],
    runs: Sequence[Run],
    heads: Sequence[HeadChoice],
    pair: Cell,
    *,
    framed: bool,
) -> Cell | None:
    """What both heads give the pair, and a button for the right model's head that gives it most.

    framed: whether the maps have a frame around the pair. The result is the pair in the right text.
    """
    query, key = (isolated(runs[0].tokens.labels[token]) for token in pair)
    weight = runs[0].weights[heads[0].layer, heads[0].head][pair]
    which = "Framed" if framed else "Chosen pair"
    places[0].text(f"{which}: “{query}” gives {weight:.3f} of its attention to “{key}”.")
    units, run, choice = _units(runs, pair), runs[1], heads[1]
    if units is None:
        places[1].text("The right side has no token with a partner in this pair.")
        return None
    queries, keys = (unit.b for unit in units)
    right = queries[0], keys[0]
    if run.causal and keys[0] > queries[-1]:
        places[1].text(f"“{query}” cannot look at “{key}” here: {run.title} does not look ahead.")
        return right
    weights = unit_weights(run, queries, keys)
    best = strongest_head(weights)
    weight, most = weights[choice.layer, choice.head], weights[best.layer, best.head]
    is_single = all(len(unit.a) == len(unit.b) == 1 for unit in units)
    said = (
        "The same pair"
        if is_single
        else f"The pair's shared units, {len(queries)} × {len(keys)} tokens here"
    )
    places[1].text(f"{said}: {weight:.3f}.", width="content")
    places[1].button(
        f"Most in {best}: {most:.3f}",
        type="tertiary",
        icon=":material/search:",
        key="side_by_side_find",
        disabled=best == HeadId(choice.layer, choice.head),
        on_click=_open,
        args=(best,),
        help="The head of this model that gives the pair the largest weight.",
    )
    return right


def _open(head: HeadId) -> None:
    st.session_state["side_by_side_b_layer"] = head.layer
    st.session_state["side_by_side_b_head"] = head.head
