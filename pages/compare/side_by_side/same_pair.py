"""One pair of tokens in both heads of the page "Side by side", and where the right model has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.compare.side_by_side.comparison import TOKENS, Cell, alignment_of
from pretrained.tokenization.alignment import AlignedUnit
from serving.heads import HeadId
from serving.runs import Run
from ui.text.isolated import isolated
from ui.text.number_text import percent
from ui.widgets.head_choice import HeadChoice
from ui.widgets.pair import choose_pair


@dataclass(frozen=True)
class MatchedPair:
    """A query and a key in both texts: their tokens on each side, and how the left text has them.

    With `is_one_cell` each is one token in both texts.
    """

    left: tuple[tuple[int, ...], tuple[int, ...]]
    right: tuple[tuple[int, ...], tuple[int, ...]]
    labels: tuple[str, str]

    @property
    def is_one_cell(self) -> bool:
        """Whether each side has one token for the query and one for the key."""
        return all(len(tokens) == 1 for tokens in (*self.left, *self.right))


def partner(runs: Sequence[Run], cell: Cell, view: str = TOKENS) -> MatchedPair | None:
    """The left tokens of a cell with the right ones that hold the same characters; None for none.

    Where the view has tokens, and both texts are cut at the same places there, a token has a token
    as its partner; elsewhere the whole shared units, or words, are the pair.
    """
    alignment = alignment_of(runs[0].tokens, runs[1].tokens, view)
    of_token = {token: unit for unit in alignment.units for token in unit.a}
    units = [of_token[token] for token in cell if token in of_token]
    if len(units) < 2:
        return None
    query, key = units
    if view == TOKENS and all(_is_cut_alike(runs, unit) for unit in units):
        left_labels = runs[0].tokens.labels
        right = [unit.b[unit.a.index(token)] for unit, token in zip(units, cell, strict=True)]
        return MatchedPair(
            ((cell[0],), (cell[1],)),
            ((right[0],), (right[1],)),
            (left_labels[cell[0]], left_labels[cell[1]]),
        )
    return MatchedPair((query.a, key.a), (query.b, key.b), (query.label_a, key.label_a))


def _is_cut_alike(runs: Sequence[Run], unit: AlignedUnit) -> bool:
    """Whether the tokens of a unit have the same characters on both sides, one by one."""
    of_left, of_right = (
        [run.tokens.text[slice(*run.tokens.spans[token])].strip().casefold() for token in tokens]
        for run, tokens in zip(runs, (unit.a, unit.b), strict=True)
    )
    return of_left == of_right


def on_the_right(runs: Sequence[Run], cell: Cell) -> Cell | None:
    """The right tokens that hold the characters of the left cell, of several the first; or None."""
    pair = partner(runs, cell)
    return None if pair is None else (pair.right[0][0], pair.right[1][0])


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


def choose(runs: Sequence[Run], head: HeadChoice, view: str) -> Cell:
    """The sliders of the query and the key, tokens of the left text in every view."""
    labels = ("Query (row)", "Key (column)") if view == TOKENS else ("Query token", "Key token")
    return choose_pair(runs[0], head, "side_by_side", labels, causal=runs[1].causal)


def line(which: str) -> DeltaGenerator:
    """The place, above the map of one side, in which `show` writes."""
    return st.container(
        horizontal=True, vertical_alignment="center", key=f"side_by_side_{which}_line"
    )


def show(
    places: Sequence[DeltaGenerator],
    runs: Sequence[Run],
    heads: Sequence[HeadChoice],
    cell: Cell,
    view: str,
) -> Cell | None:
    """What both heads give the pair, and a button for the right model's head that gives it most.

    The result is the pair in the right text.
    """
    pair, run, choice = partner(runs, cell, view), runs[1], heads[1]
    left = ((cell[0],), (cell[1],)) if pair is None else pair.left
    labels = tuple(runs[0].tokens.labels[token] for token in cell) if pair is None else pair.labels
    query, key = (isolated(label) for label in labels)
    weight = unit_weights(runs[0], *left)[heads[0].layer, heads[0].head]
    is_framed = view == TOKENS and all(len(tokens) == 1 for tokens in left)
    which = "Framed" if is_framed else "Chosen pair"
    place = places[0].container(key="side_by_side_framed" if is_framed else "side_by_side_chosen")
    place.text(f"{which}: “{query}” gives {percent(weight)} of its attention to “{key}”.")
    if pair is None:
        places[1].text("The right side has no token with a partner in this pair.")
        return None
    queries, keys = pair.right
    right = queries[0], keys[0]
    if run.causal and keys[0] > queries[-1]:
        places[1].text(f"“{query}” cannot look at “{key}” here: {run.title} does not look ahead.")
        return right
    weights = unit_weights(run, queries, keys)
    best = strongest_head(weights)
    weight, most = weights[choice.layer, choice.head], weights[best.layer, best.head]
    several = "" if pair.is_one_cell else f", {len(queries)} × {len(keys)} tokens here"
    places[1].text(f"The same pair{several}: {percent(weight)}.", width="content")
    places[1].button(
        f"Most in {best}: {percent(most)}",
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
