"""The heatmap of one head, drawn in the browser on a canvas from exact float32 values.

The values travel as raw bytes, and hovering, tapping or moving with the arrow keys reads the
value out of the same bytes: what is read is what the tensor holds. Maps with the same `link` frame
each other's aligned cells, in the browser alone. Every picture can be saved there as PNG or SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from ui.canvas.component import Canvas, sentence
from ui.canvas.component import pack as pack_arrays

_NOTHING = "nothing to show here"


_PARTS = (
    "map_data", "map_layout", "map_cells", "map_labels", "map_frames", "map_words", "map_keys",
    "map_legend",
)  # fmt: skip
canvas = Canvas("heatmap", *_PARTS)


@dataclass(frozen=True)
class ColourScale:
    """Colours from `lowest` to `largest`: by the value, or by its square root (only from 0).

    The square root shows small weights. Scores, which may be negative, have a `lowest` below 0.
    Raises: ValueError for a square root of a scale that does not begin at 0.
    """

    largest: float
    square_root: bool = False
    lowest: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a square root of values that may be negative."""
        if self.square_root and self.lowest:
            raise ValueError(f"a square-root scale begins at 0, not at {self.lowest}")


@dataclass(frozen=True)
class DivergingScale:
    """Colours for signed values: blue at -`largest`, nearly white at 0, orange at +`largest`."""

    largest: float


@dataclass(frozen=True)
class Linked:
    """Which cells of several maps belong together, for hovering one to frame the others.

    group: maps of a page with the same text here are linked. rows, columns: for each row and each
    column the number of its unit, the same in all maps; -1 for one without a partner.
    merges: whether the values of several aligned cells add up to one of a unit (weights do: the
    sum over keys, averaged over queries), which is then read out.
    """

    group: str
    rows: Sequence[int]
    columns: Sequence[int]
    merges: bool = True


@dataclass(frozen=True)
class Map:
    """Values (T, S) to draw, queries as rows and keys as columns, and how.

    causal: cells above the diagonal are drawn as "may not look", not as a weight of zero.
    row_labels: where the rows are not the first tokens of the columns.
    value_name: what a value is called when it is read ("weight", "score", "difference").
    hidden_text: what is read on a cell that is NaN; such a cell is drawn as absent. Where it is
    given, the legend has room for it from the start, and nothing below moves when cells go.
    chosen: a (row, column) that stays framed. captions: lines below the title of a saved picture,
    for what the page says around it. axes: what a row and a column are called. row_height: of every
    row in pixels, whatever the width of a cell, so that each row has room for its label; None
    draws squares. framed_rows: neighbours that stay framed from end to end; the arrow keys begin
    there. room_for: row labels that come later and keep the rows in place (with `row_height`).
    Raises: ValueError when units or row labels are more or fewer than the rows or columns, or for
    a causal map whose cells are not square.
    """

    weights: np.ndarray
    labels: Sequence[str]
    title: str
    causal: bool
    scale: ColourScale | DivergingScale
    row_labels: Sequence[str] | None = None
    value_name: str = "weight"
    hidden_text: str = _NOTHING
    link: Linked | None = None
    chosen: tuple[int, int] | None = None
    captions: Sequence[str] = ()
    axes: tuple[str, str] = ("query", "key")
    row_height: int | None = None
    framed_rows: Sequence[int] = ()
    room_for: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse labels, units and row heights that do not fit the values."""
        rows, columns = self.weights.shape
        if self.causal and self.row_height is not None:
            raise ValueError(f"a causal map has square cells, not rows of {self.row_height} pixels")
        named: list[tuple[str, Sequence[Any] | None, int]] = [("row labels", self.row_labels, rows)]
        if self.link is not None:
            named += [("row units", self.link.rows, rows)]
            named += [("column units", self.link.columns, columns)]
        for kind, labels, size in named:
            if labels is not None and len(labels) != size:
                raise ValueError(
                    f"{len(labels)} {kind} for a map of {rows} rows, {columns} columns"
                )


def heatmap(picture: Map, *, key: str, on_cell: Callable[[], None] | None = None) -> None:
    """Draw a map.

    on_cell: a callback for a click or Enter on a cell; `picked(key)` says which one it was.
    """
    callbacks = {} if on_cell is None else {"on_cell_change": on_cell}
    canvas.draw(pack(picture, picks=on_cell is not None), key=key, **callbacks)


def picked(key: str) -> tuple[int, int] | None:
    """The (row, column) last clicked in the heatmap `key`, as the browser says; None before.

    It may lie outside the map that is shown now: check it against the map's shape.
    """
    cell = getattr(st.session_state.get(key), "cell", None)
    if not isinstance(cell, list | tuple) or len(cell) != 2:
        return None
    if not all(type(index) in (int, float) and 0 <= index < 1e6 for index in cell):
        return None
    return int(cell[0]), int(cell[1])


def pack(picture: Map, *, picks: bool = False) -> bytes:
    """What the browser receives: a header, then float32 values row by row."""
    (rows, columns), scale, link = picture.weights.shape, picture.scale, picture.link
    header = {
        "rows": rows,
        "columns": columns,
        "labels": list(picture.labels),
        "rowLabels": list(picture.labels if picture.row_labels is None else picture.row_labels),
        "title": picture.title,
        "says": sentence(picture.axes),
        "causal": picture.causal,
        "lowest": -scale.largest if isinstance(scale, DivergingScale) else scale.lowest,
        "largest": scale.largest,
        "squareRoot": isinstance(scale, ColourScale) and scale.square_root,
        "diverging": isinstance(scale, DivergingScale),
        "valueName": picture.value_name,
        "hiddenText": picture.hidden_text,
        "mayHide": picture.hidden_text != _NOTHING,  # then the legend keeps room for saying so
        "link": link and link.group,
        "rowUnits": link and [int(unit) for unit in link.rows],
        "columnUnits": link and [int(unit) for unit in link.columns],
        "merges": link is not None and link.merges,
        "chosen": picture.chosen,
        "picks": picks,
        "captions": list(picture.captions),
        "axes": [[axis, {"query": "queries"}.get(axis, f"{axis}s")] for axis in picture.axes],
        # columns that are no tokens are named by their numbers alone
        "numbered": picture.axes[1] != "key",
        "rowHeight": picture.row_height,
        "framedRows": list(picture.framed_rows),
        "roomFor": list(picture.room_for),
    }
    return pack_arrays(header, picture.weights.astype("<f4"))
