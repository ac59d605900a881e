"""Two aligned attention maps on the page "Side by side", and their difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pretrained.tokenization.alignment import (
    Alignment,
    Groups,
    aligned,
    aligned_words,
    group_labels,
)
from pretrained.tokenization.tokens import Tokens
from serving.runs import Run
from ui.canvas.heatmap import ColourScale, DivergingScale, LinkedCells, Map, clicked_cell, heatmap
from ui.export import tables
from ui.text.formatting import format_number, percent, plural
from ui.text.isolated import isolated
from ui.widgets import controls, head_pairs
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

TOKENS, UNITS, WORDS = "tokens", "shared units", "words"
VIEWS = (TOKENS, UNITS, WORDS)
Cell = tuple[int, int]
HIDDEN_BOTH = "masked on both sides, because decoders can't look ahead"
HIDDEN_ONE = "not comparable, because the decoder can't look ahead"


@dataclass(frozen=True)
class MapSide:
    """One of the two maps as drawn: values (Q, Q), and a label for each row and column.

    units: index of the shared unit of each row, or -1 if the other text doesn't have it.
    unmatched_share: mean weight of the compared rows on each group of tokens without a partner.
    future_share: their mean weight on cells that the other side can't see.
    """

    title: str
    values: np.ndarray
    labels: tuple[str, ...]
    units: tuple[int, ...]
    causal: bool
    unmatched_share: dict[str, float]
    future_share: float


@dataclass(frozen=True)
class MapComparison:
    """Two maps, and left minus right (U, U) over the units that both texts share.

    difference: NaN where a cell can't be compared. left, right: the two subtracted maps, (U, U)
    each. labels: labels of the units in the left and right text. hidden_text: why a cell is hidden.
    """

    sides: tuple[MapSide, MapSide]
    left: np.ndarray
    right: np.ndarray
    difference: np.ndarray
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    hidden_text: str

    @property
    def largest(self) -> float:
        """The largest absolute difference, or 0 if no cell can be compared."""
        known = np.abs(self.difference[~np.isnan(self.difference)])
        return float(known.max(initial=0.0))

    @cached_property
    def table(self) -> pd.DataFrame:
        """All comparable cells, largest difference first."""
        rows, columns = np.nonzero(~np.isnan(self.difference))
        order = np.argsort(-np.abs(self.difference[rows, columns]), kind="stable")
        rows, columns = rows[order], columns[order]
        first, second = (np.array(labels, dtype=object) for labels in self.labels)
        same = self.labels[0] == self.labels[1]
        frame = {"query unit": rows, "query": first[rows], "key unit": columns}
        frame |= {"key": first[columns]}
        if not same:
            frame |= {"query, right": second[rows], "key, right": second[columns]}
        return pd.DataFrame(
            frame
            | {
                "left": self.left[rows, columns],
                "right": self.right[rows, columns],
                "left minus right": self.difference[rows, columns],
            }
        )


def alignment_of(a: Tokens, b: Tokens, view: str) -> Alignment:
    """Align two texts by words, or in other views by the boundaries that both have."""
    return aligned_words(a, b) if view == WORDS else aligned(a, b)


def compare(
    runs: tuple[Run, Run],
    heads: tuple[HeadChoice, HeadChoice],
    view: str,
    renormalise: bool,
) -> MapComparison:
    """Compare two heads over tokens, shared units or words.

    In every view, the difference is over the units of the alignment. With `renormalise`, each row
    of both sides is divided by its total weight on comparable cells.
    Raises: ValueError for a view that isn't in VIEWS.
    """
    from pages.compare.side_by_side.experiment import (
        difference,
        merge_tokens,
        renormalize,
        visible_groups,
    )

    if view not in VIEWS:
        raise ValueError(f"view must be one of {', '.join(VIEWS)}, got {view!r}")
    a, b = runs[0].tokens, runs[1].tokens
    alignment = alignment_of(a, b, view)
    groups = tuple(unit.a for unit in alignment.units), tuple(unit.b for unit in alignment.units)
    weights = [
        run.tensors.weights[head.layer, head.head] for run, head in zip(runs, heads, strict=True)
    ]
    visible = [
        visible_groups(group, group, causal=run.causal)
        for group, run in zip(groups, runs, strict=True)
    ]
    comparable = visible[0] & visible[1]
    merged = [merge_tokens(w, g, g) for w, g in zip(weights, groups, strict=True)]
    shares = (
        [renormalize(weight_map, comparable) for weight_map in merged] if renormalise else merged
    )
    signed = difference(shares[0], shares[1], comparable)
    sides = tuple(
        _side(run, head, alignment, which, view, weights[i], merged[i], comparable)
        for i, (run, head, which) in enumerate(zip(runs, heads, "ab", strict=True))
    )
    both_causal = runs[0].causal and runs[1].causal
    return MapComparison(
        sides=(sides[0], sides[1]),
        left=shares[0].numpy(),
        right=shares[1].numpy(),
        difference=signed.numpy(),
        labels=(
            tuple(unit.label_a for unit in alignment.units),
            tuple(unit.label_b for unit in alignment.units),
        ),
        hidden_text=HIDDEN_BOTH if both_causal else HIDDEN_ONE,
    )


def _side(
    run: Run,
    head: HeadChoice,
    alignment: Alignment,
    which: str,
    view: str,
    weights: Tensor,
    merged: Tensor,
    comparable: Tensor,
) -> MapSide:
    from pages.compare.side_by_side.experiment import merge_tokens

    own = tuple(unit.a if which == "a" else unit.b for unit in alignment.units)
    only = alignment.only_a if which == "a" else alignment.only_b
    if view == TOKENS:
        values, labels = weights, run.tokens.labels
        units = alignment.unit_of(which, len(run.tokens))
    else:
        all_groups: Groups = tuple(sorted(own + only))
        values, labels = (
            merge_tokens(weights, all_groups, all_groups),
            group_labels(run.tokens, all_groups),
        )
        number = {group: i for i, group in enumerate(own)}
        units = tuple(number.get(group, -1) for group in all_groups)
    given_weights = merge_tokens(weights, own, only).mean(0).tolist() if own and only else []
    return MapSide(
        title=head.short_title,
        values=values.numpy(),
        labels=labels,
        units=units,
        causal=run.causal,
        unmatched_share=dict(zip(group_labels(run.tokens, only), given_weights, strict=False)),
        future_share=float(merged.masked_fill(comparable, 0.0).sum(-1).mean()) if own else 0.0,
    )


def scale(maps: Sequence[np.ndarray], how: str) -> ColourScale:
    """The color scale shared by the maps (Q, Q), as selected with `controls.colours`."""
    if how == controls.WHOLE:
        return ColourScale(1.0)
    many = max(map(len, maps)) >= head_pairs.MANY_TOKENS
    square_root = how == controls.SQUARE_ROOT or (how == controls.AUTOMATIC and many)
    return ColourScale(max(float(values.max()) for values in maps), square_root)


def draw_alone(run: Run, choice: HeadChoice, how: str, *, key: str) -> None:
    """Show the map of one head when the other side failed."""
    weights = run.weights[choice.layer, choice.head]
    colours = scale([weights], how)
    heatmap(Map(weights, run.tokens.labels, choice.title, run.causal, colours), key=key)
    head_pairs.strongest_pair(run, choice)


def draw(
    side: MapSide,
    colours: ColourScale,
    framed: tuple[Cell, Callable[[Cell | None], None]] | None = None,
    *,
    key: str,
) -> None:
    """Show the map of one side; pointing at a cell frames the matching cells of the others.

    framed: the selected cell, and the callback for a clicked cell.
    """
    chosen, take = framed or (None, None)
    weights = Map(
        side.values,
        side.labels,
        title=side.title,
        causal=side.causal,
        scale=colours,
        link=LinkedCells("side", side.units, side.units),
        selected=chosen,
    )
    heatmap(weights, key=key, on_cell=None if take is None else lambda: take(clicked_cell(key)))


def draw_difference(comparison: MapComparison, *, key: str) -> None:
    """Show the difference map, linked to the maps of both sides."""
    units = range(len(comparison.labels[0]))
    difference = Map(
        comparison.difference,
        comparison.labels[0],
        title="Left minus right",
        causal=False,
        scale=DivergingScale(comparison.largest or 1.0),
        value_name="difference",
        hidden_text=comparison.hidden_text,
        link=LinkedCells("side", units, units, merges=False),
        captions=[f"left: {comparison.sides[0].title}", f"right: {comparison.sides[1].title}"],
    )
    heatmap(difference, key=key)


def summary(comparison: MapComparison) -> None:
    """Show the range of the differences, and the weight that isn't compared."""
    table = comparison.table
    if table.empty:
        st.text("No cells can be compared. Choose two texts that share some words.")
        return
    first, differences = table.iloc[0], table["left minus right"]
    ends = [format_number(end, "+.3f") for end in (differences.min(), differences.max())]
    st.text(
        f"The largest difference: “{isolated(first['query'])}” gives “{isolated(first['key'])}” "
        f"{percent(first['left'])} of its attention on the left and {percent(first['right'])} on "
        f"the right. The two texts share {plural(len(comparison.labels[0]), 'unit')}, so "
        f"{plural(len(table), 'cell')} can be compared. Differences range from {ends[0]} to "
        f"{ends[1]}."
    )
    for name, side in zip(("left", "right"), comparison.sides, strict=True):
        for text in omitted_sentences(name, side):
            st.text(text)


def omitted_sentences(name: str, side: MapSide) -> list[str]:
    """Sentences about a side's weight on tokens and cells that the other side doesn't have."""
    sentences = []
    if side.unmatched_share:
        ordered = sorted(side.unmatched_share.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{isolated(label)} {percent(w)}" for label, w in ordered[:4])
        more = f" and {len(ordered) - 4} more" if len(ordered) > 4 else ""
        sentences.append(
            f"On the {name}, these tokens have no partner and aren't compared: {listed}{more}. On "
            f"average, a row gives them {percent(sum(side.unmatched_share.values()))} of its "
            "weight."
        )
    if side.future_share > 0:
        sentences.append(
            f"On the {name}, a row gives {percent(side.future_share)} of its weight on average "
            "to later "
            "tokens, which the decoder can't see."
        )
    return sentences


def numbers(sides: Sequence[tuple[str, Run, HeadChoice]], comparison: MapComparison | None) -> None:
    """Show the differences and the weights of each side ("a" or "b") as tables."""
    if comparison is not None:
        st.text("Left minus right, largest difference first")
        rows = tables.height(comparison.table, 320)
        st.dataframe(comparison.table, hide_index=True, height=rows)
        tables.download(
            "Download differences (CSV)",
            comparison.table,
            "left_minus_right.csv",
            key="side_by_side_difference_csv",
        )
    for (which, run, choice), column in zip(sides, st.columns(2, gap="large"), strict=False):
        with column:
            table = head_pairs.pairs(run, choice)
            st.text(f"{choice.title}: tokens")
            st.dataframe(table, hide_index=True, height=tables.height(table, 320))
            tables.download(
                "Download weights (CSV)",
                table,
                f"{choice.entry.spec.name}_layer{choice.layer}_head{choice.head}.csv",
                key=f"side_by_side_{which}_csv",
            )
