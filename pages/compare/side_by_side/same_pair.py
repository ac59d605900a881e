"""One pair of tokens in both heads of "Side by side", and the right model's best head."""

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
from ui.text.formatting import percent
from ui.text.isolated import isolated
from ui.widgets.head_choice import HeadChoice
from ui.widgets.pair import choose_pair


@dataclass(frozen=True)
class MatchedPair:
    """A query and key in both texts: (query tokens, key tokens) per side, and left labels."""

    left: tuple[tuple[int, ...], tuple[int, ...]]
    right: tuple[tuple[int, ...], tuple[int, ...]]
    labels: tuple[str, str]

    @property
    def is_one_cell(self) -> bool:
        """Whether query and key are a single token each, on both sides."""
        return all(len(tokens) == 1 for tokens in (*self.left, *self.right))


def partner(runs: Sequence[Run], cell: Cell, view: str = TOKENS) -> MatchedPair | None:
    """Match a cell's tokens on the left with those on the right, or None without a match.

    In the token view, tokens match one to one if both texts are split in the same way there.
    Otherwise the pair consists of whole shared units or words.
    """
    alignment = alignment_of(runs[0].tokens, runs[1].tokens, view)
    of_token = {token: unit for unit in alignment.units for token in unit.a}
    units = [of_token[token] for token in cell if token in of_token]
    if len(units) < 2:
        return None
    query, key = units
    if view == TOKENS and all(_has_same_split(runs, unit) for unit in units):
        left_labels = runs[0].tokens.labels
        right = [unit.b[unit.a.index(token)] for unit, token in zip(units, cell, strict=True)]
        return MatchedPair(
            ((cell[0],), (cell[1],)),
            ((right[0],), (right[1],)),
            (left_labels[cell[0]], left_labels[cell[1]]),
        )
    return MatchedPair((query.a, key.a), (query.b, key.b), (query.label_a, key.label_a))


def _has_same_split(runs: Sequence[Run], unit: AlignedUnit) -> bool:
    """Whether both sides split a unit into tokens with the same characters."""
    of_left, of_right = (
        [run.tokens.text[slice(*run.tokens.spans[token])].strip().casefold() for token in tokens]
        for run, tokens in zip(runs, (unit.a, unit.b), strict=True)
    )
    return of_left == of_right


def right_cell(runs: Sequence[Run], cell: Cell) -> Cell | None:
    """The first matching tokens on the right for a left cell, or None."""
    pair = partner(runs, cell)
    return None if pair is None else (pair.right[0][0], pair.right[1][0])


def left_cell(runs: Sequence[Run], pair: Cell) -> Cell | None:
    """The first matching tokens on the left for a right pair, or None."""
    return right_cell((runs[1], runs[0]), pair)


def choose_clicked(which: str, runs: Sequence[Run], cell: Cell | None) -> None:
    """Select the pair of a clicked cell, if the left text contains that pair."""
    pair = cell if cell is None or which == "a" else left_cell(runs, cell)
    if pair is not None and max(pair) < len(runs[0].tokens):
        st.session_state["side_by_side_query"], st.session_state["side_by_side_key"] = pair


def unit_weights(run: Run, queries: Sequence[int], keys: Sequence[int]) -> np.ndarray:
    """Weight (L, H) of each head from some query tokens to some key tokens.

    Summed over the keys and averaged over the queries, as in the map of shared units.
    """
    weights = run.weights[:, :, list(queries)][..., list(keys)]
    return weights.sum(axis=-1).mean(axis=-1)


def strongest_head(weights: np.ndarray) -> HeadId:
    """The head with the largest weight. weights: (L, H)."""
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return HeadId(layer, head)


def choose(runs: Sequence[Run], head: HeadChoice, view: str) -> Cell:
    """Show sliders for query and key, which are tokens of the left text in every view."""
    labels = ("Query (row)", "Key (column)") if view == TOKENS else ("Query token", "Key token")
    return choose_pair(runs[0], head, "side_by_side", labels, causal=runs[1].causal)


def pair_container(which: str) -> DeltaGenerator:
    """The container above the map of one side that `show` fills."""
    return st.container(
        horizontal=True, vertical_alignment="center", key=f"side_by_side_{which}_line"
    )


def show(
    containers: Sequence[DeltaGenerator],
    runs: Sequence[Run],
    heads: Sequence[HeadChoice],
    cell: Cell,
    view: str,
) -> Cell | None:
    """Show both heads' weights on the pair, and a button for the right model's best head.

    Returns: the pair in the right text, or None without a match.
    """
    pair, run, choice = partner(runs, cell, view), runs[1], heads[1]
    left = ((cell[0],), (cell[1],)) if pair is None else pair.left
    labels = tuple(runs[0].tokens.labels[token] for token in cell) if pair is None else pair.labels
    query, key = (isolated(label) for label in labels)
    weight = unit_weights(runs[0], *left)[heads[0].layer, heads[0].head]
    is_framed = view == TOKENS and all(len(tokens) == 1 for tokens in left)
    which = "Framed" if is_framed else "Selected pair"
    place = containers[0].container(
        key="side_by_side_framed" if is_framed else "side_by_side_chosen"
    )
    place.text(f"{which}: “{query}” gives {percent(weight)} of its attention to “{key}”.")
    if pair is None:
        containers[1].text("The right side doesn't have this pair of tokens.")
        return None
    queries, keys = pair.right
    right = queries[0], keys[0]
    if run.causal and keys[0] > queries[-1]:
        containers[1].text(
            f"“{query}” can't look at “{key}” here, because {run.title} can't look ahead."
        )
        return right
    weights = unit_weights(run, queries, keys)
    best = strongest_head(weights)
    weight, most = weights[choice.layer, choice.head], weights[best.layer, best.head]
    several = "" if pair.is_one_cell else f" ({len(queries)} × {len(keys)} tokens here)"
    containers[1].text(f"Same pair{several}: {percent(weight)}.", width="content")
    containers[1].button(
        f"Open strongest head: {best}, {percent(most)}",
        type="tertiary",
        icon=":material/search:",
        key="side_by_side_find",
        disabled=best == HeadId(choice.layer, choice.head),
        on_click=_open,
        args=(best,),
        help="The head of this model with the largest weight on this pair.",
    )
    return right


def _open(head: HeadId) -> None:
    st.session_state["side_by_side_b_layer"] = head.layer
    st.session_state["side_by_side_b_head"] = head.head
