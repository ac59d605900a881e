"""The heatmap of one head, drawn on a canvas in the browser from exact float32 values.

The values are sent as raw bytes. Hovering, tapping or using the arrow keys shows a value from the
same bytes, so it's exactly the tensor's value. Maps with the same `link` highlight each other's
aligned cells; that happens entirely in the browser. Every picture can be saved as PNG or SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from ui.canvas.component import Canvas, axis_description
from ui.canvas.component import pack as pack_arrays

_NOTHING = "nothing to show here"


_PARTS = (
    "map_data", "map_layout", "map_cells", "map_labels", "map_frames", "map_words", "map_keys",
    "map_legend",
)  # fmt: skip
canvas = Canvas("heatmap", *_PARTS)


@dataclass(frozen=True)
class ColourScale:
    """A color scale from `lowest` to `largest`, linear or by square root.

    The square root makes small weights visible. Scores can be negative, so their `lowest` is below
    0.
    Raises: ValueError for a square-root scale that doesn't start at 0.
    """

    largest: float
    square_root: bool = False
    lowest: float = 0.0

    def __post_init__(self) -> None:
        """Check that a square-root scale starts at 0."""
        if self.square_root and self.lowest:
            raise ValueError(f"a square-root scale must start at 0, got {self.lowest}")


@dataclass(frozen=True)
class DivergingScale:
    """A scale for signed values: blue at -`largest`, nearly white at 0, orange at +`largest`."""

    largest: float


@dataclass(frozen=True)
class LinkedCells:
    """Alignment of several maps: hovering over a cell highlights its partners in the others.

    group: maps on a page with the same group are linked. rows, columns: the unit of each row and
    column, the same in all maps; -1 for those without a partner. merges: whether the values of
    aligned cells can be merged into one value per unit, which is then shown. Weights can be merged
    (summed over keys, averaged over queries).
    """

    group: str
    rows: Sequence[int]
    columns: Sequence[int]
    merges: bool = True


@dataclass(frozen=True)
class Map:
    """A map of values (T, S), with queries as rows and keys as columns, and how to draw it.

    causal: draw cells above the diagonal as masked, not as zero weights. row_labels: needed if the
    rows aren't the first tokens of the columns. value_name: "weight", "score" or "difference", for
    example. hidden_text: the text shown for NaN cells, which are crossed out; if it's set, the
    legend reserves space for it, so nothing moves when cells are hidden. selected: a (row, column)
    that stays framed. captions: lines below the title of a saved picture, with information that the
    page shows around it. axes: names of a row and a column. row_height: height of the rows in
    pixels, so that each row has space for its label; None draws squares. framed_rows: adjacent rows
    that stay framed over the full width; the arrow keys start there. room_for: row labels of later
    steps; space is reserved for them, so the rows stay in place (with `row_height`).
    Raises: ValueError if the number of units or row labels doesn't match the rows or columns, or if
    a causal map's cells aren't square.
    """

    weights: np.ndarray
    labels: Sequence[str]
    title: str
    causal: bool
    scale: ColourScale | DivergingScale
    row_labels: Sequence[str] | None = None
    value_name: str = "weight"
    hidden_text: str = _NOTHING
    link: LinkedCells | None = None
    selected: tuple[int, int] | None = None
    captions: Sequence[str] = ()
    axes: tuple[str, str] = ("query", "key")
    row_height: int | None = None
    framed_rows: Sequence[int] = ()
    room_for: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that labels, units and row height fit the values."""
        rows, columns = self.weights.shape
        if self.causal and self.row_height is not None:
            raise ValueError(f"a causal map needs square cells, got row_height={self.row_height}")
        by_name: list[tuple[str, Sequence[Any] | None, int]] = [
            ("row labels", self.row_labels, rows)
        ]
        if self.link is not None:
            by_name += [("row units", self.link.rows, rows)]
            by_name += [("column units", self.link.columns, columns)]
        for kind, labels, size in by_name:
            if labels is not None and len(labels) != size:
                raise ValueError(
                    f"{len(labels)} {kind} for a map of {rows} rows, {columns} columns"
                )


def heatmap(picture: Map, *, key: str, on_cell: Callable[[], None] | None = None) -> None:
    """Draw a map.

    on_cell: called on a click or Enter on a cell; `clicked_cell(key)` returns the cell.
    """
    callbacks = {} if on_cell is None else {"on_cell_change": on_cell}
    canvas.draw(pack(picture, picks=on_cell is not None), key=key, **callbacks)


def clicked_cell(key: str) -> tuple[int, int] | None:
    """The (row, column) last clicked in the heatmap `key`, or None.

    It comes from the browser and may be outside the current map, so check it against the shape.
    """
    cell = getattr(st.session_state.get(key), "cell", None)
    if not isinstance(cell, list | tuple) or len(cell) != 2:
        return None
    if not all(type(index) in (int, float) and 0 <= index < 1e6 for index in cell):
        return None
    return int(cell[0]), int(cell[1])


def pack(picture: Map, *, picks: bool = False) -> bytes:
    """Encode the data for the browser: a header, then float32 values row by row."""
    (rows, columns), scale, link = picture.weights.shape, picture.scale, picture.link
    header = {
        "rows": rows,
        "columns": columns,
        "labels": list(picture.labels),
        "rowLabels": list(picture.labels if picture.row_labels is None else picture.row_labels),
        "title": picture.title,
        "says": axis_description(picture.axes),
        "causal": picture.causal,
        "lowest": -scale.largest if isinstance(scale, DivergingScale) else scale.lowest,
        "largest": scale.largest,
        "squareRoot": isinstance(scale, ColourScale) and scale.square_root,
        "diverging": isinstance(scale, DivergingScale),
        "valueName": picture.value_name,
        "hiddenText": picture.hidden_text,
        "mayHide": picture.hidden_text != _NOTHING,  # the legend reserves space for it
        "link": link and link.group,
        "rowUnits": link and [int(unit) for unit in link.rows],
        "columnUnits": link and [int(unit) for unit in link.columns],
        "merges": link is not None and link.merges,
        "chosen": picture.selected,
        "picks": picks,
        "captions": list(picture.captions),
        "axes": [[axis, {"query": "queries"}.get(axis, f"{axis}s")] for axis in picture.axes],
        # columns that aren't tokens are labeled by index
        "numbered": picture.axes[1] != "key",
        "rowHeight": picture.row_height,
        "framedRows": list(picture.framed_rows),
        "roomFor": list(picture.room_for),
    }
    return pack_arrays(header, picture.weights.astype("<f4"))
