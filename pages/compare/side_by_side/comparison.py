"""Two heads on shared rows and columns: their maps, aligned, and the difference of the two."""

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
from ui.canvas.heatmap import ColourScale, DivergingScale, Linked, Map, heatmap, picked
from ui.export import tables
from ui.text.isolated import isolated
from ui.text.number_text import percent, written
from ui.widgets import controls, head_pairs
from ui.widgets.head_choice import HeadChoice

if TYPE_CHECKING:
    from torch import Tensor

TOKENS, UNITS, WORDS = "tokens", "shared units", "words"
VIEWS = (TOKENS, UNITS, WORDS)
Cell = tuple[int, int]
HIDDEN_BOTH = "masked on both sides, no query may look ahead"
HIDDEN_ONE = "not comparable, the decoder may not look ahead"


@dataclass(frozen=True)
class MapSide:
    """One of the two maps as it is drawn: values (Q, Q), and a label for each row and column.

    units: the number of the shared unit of each row, or -1 where the other text has none. alone:
    the mean weight that the compared rows give to each group of tokens that has no partner. ahead:
    the mean weight that they give to cells that the other side may not see.
    """

    title: str
    values: np.ndarray
    labels: tuple[str, ...]
    units: tuple[int, ...]
    causal: bool
    alone: dict[str, float]
    ahead: float


@dataclass(frozen=True)
class MapComparison:
    """Two sides, and left minus right (U, U) over the units that both texts have.

    difference: NaN where a cell cannot be compared. left, right: the two maps that were subtracted,
    (U, U) each. labels: the labels of the units in the left and in the right text. hidden_text: why
    a cell is hidden.
    """

    sides: tuple[MapSide, MapSide]
    left: np.ndarray
    right: np.ndarray
    difference: np.ndarray
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    hidden_text: str

    @property
    def largest(self) -> float:
        """The largest difference, whatever its sign; 0 where nothing can be compared."""
        known = np.abs(self.difference[~np.isnan(self.difference)])
        return float(known.max(initial=0.0))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every cell that can be compared, the largest difference first."""
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
    """What the two texts share in a view: words, else the units between common borders."""
    return aligned_words(a, b) if view == WORDS else aligned(a, b)


def compare(
    runs: tuple[Run, Run],
    heads: tuple[HeadChoice, HeadChoice],
    view: str,
    renormalise: bool,
) -> MapComparison:
    """The two heads over tokens, shared units or words, and left minus right over their units.

    The difference is taken over the units of the alignment in every view. With `renormalise`, each
    row of both sides is divided by what it gives to the cells that can be compared.
    Raises: ValueError for a view that is not in VIEWS.
    """
    from pages.compare.side_by_side.experiment import (
        difference,
        merge_tokens,
        renormalised,
        visible_groups,
    )

    if view not in VIEWS:
        raise ValueError(f"a view is one of {', '.join(VIEWS)}, not {view!r}")
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
        [renormalised(weight_map, comparable) for weight_map in merged] if renormalise else merged
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
        alone=dict(zip(group_labels(run.tokens, only), given_weights, strict=False)),
        ahead=float(merged.masked_fill(comparable, 0.0).sum(-1).mean()) if own else 0.0,
    )


def scale(maps: Sequence[np.ndarray], how: str) -> ColourScale:
    """The one scale of the maps (Q, Q), as chosen with `controls.colours`."""
    if how == controls.WHOLE:
        return ColourScale(1.0)
    many = max(map(len, maps)) >= head_pairs.MANY_TOKENS
    square_root = how == controls.SQUARE_ROOT or (how == controls.AUTOMATIC and many)
    return ColourScale(max(float(values.max()) for values in maps), square_root)


def draw_alone(run: Run, choice: HeadChoice, how: str, *, key: str) -> None:
    """The map of one head, where the other side has none."""
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
    """The map of one side; pointing at a cell frames the aligned cells of the other maps.

    framed: the cell that stays framed, and what a click on a cell calls with it.
    """
    chosen, take = framed or (None, None)
    weights = Map(
        side.values,
        side.labels,
        title=side.title,
        causal=side.causal,
        scale=colours,
        link=Linked("side", side.units, side.units),
        chosen=chosen,
    )
    heatmap(weights, key=key, on_cell=None if take is None else lambda: take(picked(key)))


def draw_difference(comparison: MapComparison, *, key: str) -> None:
    """The difference map, linked to the maps of both sides."""
    units = range(len(comparison.labels[0]))
    difference = Map(
        comparison.difference,
        comparison.labels[0],
        title="Left minus right",
        causal=False,
        scale=DivergingScale(comparison.largest or 1.0),
        value_name="difference",
        hidden_text=comparison.hidden_text,
        link=Linked("side", units, units, merges=False),
        captions=[f"left: {comparison.sides[0].title}", f"right: {comparison.sides[1].title}"],
    )
    heatmap(difference, key=key)


def summary(comparison: MapComparison) -> None:
    """The range of the differences, and what is left out of them, in numbers."""
    table = comparison.table
    if table.empty:
        st.text("No cell can be compared.")
        return
    first, differences = table.iloc[0], table["left minus right"]
    ends = [written(end, "+.3f") for end in (differences.min(), differences.max())]
    st.text(
        f"{len(comparison.labels[0])} units stand in both, {len(table)} cells can be compared. "
        f"Differences run from {ends[0]} to "
        f"{ends[1]}. The largest: "
        f"“{isolated(first['query'])}” gives “{isolated(first['key'])}” "
        f"{percent(first['left'])} on the left and {percent(first['right'])} on the right."
    )
    for name, side in zip(("left", "right"), comparison.sides, strict=True):
        for text in left_out(name, side):
            st.text(text)


def left_out(name: str, side: MapSide) -> list[str]:
    """Sentences about what a side gives to tokens and cells that the other side does not have."""
    sentences = []
    if side.alone:
        ordered = sorted(side.alone.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{isolated(label)} {percent(w)}" for label, w in ordered[:4])
        more = f" and {len(ordered) - 4} more" if len(ordered) > 4 else ""
        sentences.append(
            f"On the {name}, {listed}{more} have no partner and are left out: a compared row "
            f"gives them {percent(sum(side.alone.values()))} of its weight on average."
        )
    if side.ahead > 0:
        sentences.append(
            f"On the {name}, a row gives {percent(side.ahead)} of its weight on average to tokens "
            "after it, which the decoder may not see."
        )
    return sentences


def numbers(
    opened: Sequence[tuple[str, Run, HeadChoice]], comparison: MapComparison | None
) -> None:
    """The differences and the weights of each side ("a" or "b") as tables that can be saved."""
    if comparison is not None:
        st.text("Left minus right, largest first")
        rows = tables.height(comparison.table, 320)
        st.dataframe(comparison.table, hide_index=True, height=rows)
        tables.download(
            "Download the differences (CSV)",
            comparison.table,
            "left_minus_right.csv",
            key="side_by_side_difference_csv",
        )
    for (which, run, choice), column in zip(opened, st.columns(2, gap="large"), strict=False):
        with column:
            table = head_pairs.pairs(run, choice)
            st.text(f"{choice.title}: tokens")
            st.dataframe(table, hide_index=True, height=tables.height(table, 320))
            tables.download(
                "Download these weights (CSV)",
                table,
                f"{choice.entry.spec.name}_layer{choice.layer}_head{choice.head}.csv",
                key=f"side_by_side_{which}_csv",
            )
