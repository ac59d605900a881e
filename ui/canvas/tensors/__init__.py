"""Small tensors drawn with their values, as nested blocks with a grid for the last two axes.

A 4-D tensor is drawn as blocks within blocks (batch > head > grid). Every value shown is the
tensor's exact float32 value. Hovering over a computed number frames its inputs and shows the
arithmetic below. Hovering over a number that was only moved highlights it in every tensor: cells
with the same identity show the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ui.canvas.component import Canvas, axis_description
from ui.canvas.component import pack as pack_arrays
from ui.text.formatting import format_shape

MAX_CELLS = 20_000  # in all panels of one picture together


_PARTS = ("panels", "layout", "arithmetic", "paint", "saved", "reads", "movement")
_canvas = Canvas("tensors", *_PARTS)


Labels = Sequence[str] | Sequence[Sequence[str]]
Quantity = Literal[
    "", "queries", "keys", "values", "positions", "stream", "attention", "feed-forward",
    "weights", "scores",
]  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """How each number of a panel was computed from other panels.

    kind, equation, sources: as in `attention_core.analysis.provenance.Computation`; a source is
    the `identity` of a panel. sizes: the size of each letter in the equation. operands: the first n
    pairs, (*shape, n, 2). n_terms: the total number of pairs. added: the bias added at the end,
    with the panel's shape.
    """

    kind: str
    equation: str
    sources: tuple[str, ...]
    sizes: dict[str, int]
    operands: np.ndarray
    n_terms: int
    added: np.ndarray | None = None


@dataclass(frozen=True)
class Panel:
    """One tensor with 1 to 4 dimensions.

    name: its title ("keys"). axes: the name of each dimension ("batch", "head", "token", "column").
    rows, columns: labels of the last two axes (usually tokens); positions by default. blocks:
    labels of the axis before them. Labels that differ along the first axis (such as two sentences
    in a batch) are one sequence per index.
    cells: an identity for each cell, with the tensor's shape; -1 for none. Hovering over a cell
    highlights the same cell in all panels of the same `strand`. groups: a coarser identity (the
    index of the group's first cell) that only colors tensors whose cells are new numbers. identity:
    the name that other panels use for this one in `provenance`. provenance: how its numbers were
    computed. quantity: the kind of numbers, if it has its own color on all pages. mark: cells to
    frame, as index tuples. positions: if the panel is a window of a larger tensor, the indices
    along each axis of that tensor, which are shown instead of the window's own. whole: the shape of
    that tensor. note: a sentence below the panel. filled: for a growing tensor, how many of its
    first rows and columns have been computed; the others stay empty. box: how many of its first
    rows and columns are hatched and framed; box_note: the text shown for cells in the box.

    Raises: ValueError if the number of axes or a shape doesn't match, if there are more than 4
    dimensions, or if `filled` or `box` is larger than the tensor.
    """

    name: str
    values: np.ndarray
    axes: tuple[str, ...]
    rows: Labels | None = None
    columns: Labels | None = None
    blocks: Labels | None = None
    cells: np.ndarray | None = None
    groups: np.ndarray | None = None
    strand: str = ""
    identity: str = ""
    provenance: Provenance | None = None
    quantity: Quantity = ""
    mark: tuple[tuple[int, ...], ...] = ()
    positions: tuple[Sequence[int], ...] | None = None
    whole: tuple[int, ...] | None = None
    note: str = ""
    filled: tuple[int, int] | None = None
    box: tuple[int, int] | None = None
    box_note: str = ""

    def __post_init__(self) -> None:
        """Check that all fields fit the tensor."""
        shape = self.values.shape
        if not 1 <= len(shape) <= 4:
            raise ValueError(f"{self.name} has {len(shape)} dimensions, but only 1 to 4 work")
        if len(self.axes) != len(shape):
            raise ValueError(f"{self.name} has {len(shape)} dimensions but {len(self.axes)} axes")
        for identities in (self.cells, self.groups):
            if identities is not None and identities.shape != shape:
                raise ValueError(
                    f"{self.name} is {shape} but its identities are {identities.shape}"
                )
        if self.provenance is not None and self.provenance.operands.shape[:-2] != shape:
            raise ValueError(
                f"{self.name} is {shape} but its operands are {self.provenance.operands.shape}"
            )
        if self.positions is not None and tuple(map(len, self.positions)) != shape:
            raise ValueError(
                f"{self.name} is {shape} but its positions are {tuple(map(len, self.positions))}"
            )
        for part in (self.filled, self.box):
            sizes = (1, *shape)[-2:]
            if part is not None and not all(map(lambda n, of: 0 <= n <= of, part, sizes)):
                raise ValueError(f"{self.name} is {shape} and has no part of size {part}")
        by_name = (
            (self.columns, shape[-1]),
            (self.rows, shape[-2:][0]),
            (self.blocks, shape[-3:][0]),
        )
        for labels, size in by_name:
            if labels is None:
                continue
            nested = len(labels) > 0 and not isinstance(labels[0], str)
            if nested and len(labels) != shape[0]:
                raise ValueError(f"{self.name} has labels for {len(labels)} of {shape[0]} blocks")
            for names in labels if nested else [labels]:
                if len(names) != size:
                    raise ValueError(f"{self.name} has {len(names)} labels for an axis of {size}")

    @property
    def shape_text(self) -> str:
        """The shape in words, such as "batch of 1 × 2 heads × 3 tokens × 3 columns"."""
        whole = self.values.shape if self.whole is None else self.whole
        part = self.values.shape if self.filled is None else self.filled
        drawn_part = "" if whole == part else f"; drawn: {' × '.join(map(str, part))}"
        return format_shape(self.axes, whole) + drawn_part


def tensors(
    panels: Sequence[Panel],
    *,
    key: str,
    colour: Literal["value", "identity"] = "value",
    decimals: int = 2,
    palette: tuple[int, int] = (1, 1),
    hue: str = "token",
    link: str = "",
    scene: str = "",
    speed: float = 1.0,
) -> None:
    """Draw the panels next to each other, with line breaks where needed.

    colour: "value" goes from blue (negative) to orange (positive), with a separate scale for each
    panel; weights use their own scale. "identity" colors each cell by its identity, except in
    scores and weights. `palette` is then (rows, width), and `hue` is the name of a row: identity i
    has the hue of row `i // width` and the shade of column `i % width`. Color-blind people can tell
    up to seven hues apart.
    link: pictures on a page with the same link highlight the same cells and draw lines between
    them. scene: an ID of the picture's content. If it changes, an animation starts: numbers that
    were only moved fly in from their position in a linked picture, and computed numbers show their
    inputs one after the other. It's skipped for visitors who prefer reduced motion. speed: 2.0 is
    twice as fast.

    Raises: ValueError if there are more than `MAX_CELLS` cells.
    """
    count = sum(panel.values.size for panel in panels)
    if count > MAX_CELLS:
        raise ValueError(f"{count} cells are too many to draw; the limit is {MAX_CELLS}")
    options = {"colour": colour, "decimals": decimals, "palette": palette, "hue": hue}
    _canvas.draw(pack(panels, **options, link=link, scene=scene, speed=speed), key=key)


def pack(panels: Sequence[Panel], **options: Any) -> bytes:
    """Encode the panels for the browser: a header, then the numbers of each panel.

    The numbers are the values (float32) and, if present, the cells and groups (int32), the operands
    and the biases (float32).
    """
    parts: list[np.ndarray] = []
    described = []
    by_name: dict[str, list[str]] = {}  # explanation -> names of the panels it applies to
    for panel in panels:
        by_name.setdefault(axis_description(panel.axes), []).append(panel.name)
        parts.append(panel.values.astype("<f4"))
        parts += [ids for ids in (panel.cells, panel.groups) if ids is not None]
        made = panel.provenance
        if made is not None:
            parts += [made.operands] if made.added is None else [made.operands, made.added]
        described.append(
            {
                "name": panel.name,
                "shape": panel.values.shape,
                "axes": panel.axes,
                "rows": _as_list(panel.rows),
                "columns": _as_list(panel.columns),
                "blocks": _as_list(panel.blocks),
                "cells": panel.cells is not None,
                "groups": panel.groups is not None,
                "strand": panel.strand,
                "identity": panel.identity,
                "quantity": panel.quantity,
                "made": made
                and {
                    "kind": made.kind,
                    "equation": made.equation,
                    "sources": made.sources,
                    "sizes": made.sizes,
                    "nOperands": made.operands.shape[-2],
                    "nTerms": made.n_terms,
                    "added": made.added is not None,
                },
                "mark": panel.mark,
                "positions": panel.positions and [list(axis) for axis in panel.positions],
                "note": panel.note,
                "there": panel.filled,
                "box": panel.box,
                "boxNote": panel.box_note,
                "shapeText": panel.shape_text,
            }
        )
    alike = len(by_name) == 1
    caption = " ".join(
        text if alike else f"{', '.join(of)}: {text}" for text, of in by_name.items()
    )
    return pack_arrays({**options, "says": caption, "panels": described}, *parts)


def _as_list(labels: Labels | None) -> list[Any] | None:
    if labels is None:
        return None
    return [label if isinstance(label, str) else list(label) for label in labels]
