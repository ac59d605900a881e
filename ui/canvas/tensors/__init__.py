"""Small tensors drawn with their values: nested blocks, one grid of cells for the last two axes.

A 4-D tensor is drawn as blocks within blocks (batch > head > grid); every value that is read is
the float32 that the tensor holds. Pointing at a number that was computed frames what it was
computed from, and writes the arithmetic below. Pointing at one that was only moved lights it up
wherever it is: cells of several tensors that carry the same identity are one number on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ui.canvas.component import Canvas, sentence
from ui.canvas.component import pack as pack_arrays
from ui.text.number_text import sizes

MAX_CELLS = 20_000  # of all panels of one picture together


_PARTS = ("panels", "layout", "arithmetic", "paint", "saved", "reads", "movement")
_canvas = Canvas("tensors", *_PARTS)


Labels = Sequence[str] | Sequence[Sequence[str]]
Quantity = Literal[
    "", "queries", "keys", "values", "positions", "stream", "attention", "feed-forward",
    "weights", "scores",
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """How each number of a panel was computed from the numbers of others.

    kind, equation, sources: as in `attention_core.analysis.computed_from.Computation`; a source is
    the `identity` of a panel. sizes: of every letter of the equation. operands: (*shape, n, 2), the
    first n pairs. n_terms: how many there are in all. added: what is added at the end, the panel's
    shape.
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
    """One tensor of 1 to 4 dimensions.

    name: what stands above it ("keys"). axes: the name of each dimension ("batch", "head", "token",
    "column"). rows, columns: labels of the last two axes (tokens, mostly); positions if absent.
    blocks: labels of the axis before them. Labels that differ along the first axis (two sentences
    in one batch) are one sequence for each of its indices.
    cells: an identity for every cell, the tensor's shape, -1 for none: pointing at a cell lights up
    the same cell elsewhere, in panels of the same `strand`. groups: a coarser identity, the number
    of the group's first cell, which only colours tensors whose cells are new numbers. identity:
    what other panels call this one in `made`. made: how its numbers were computed. quantity: what
    they are, if it has colours of its own on all pages. mark: cells to frame, as index tuples.
    positions: where the panel is a window of a larger tensor, the indices in it along each axis;
    they are written instead of the window's own. whole: the shape of that tensor. note: a sentence
    below it. filled: of a tensor that grows, how many of its first rows and columns have been
    computed; the others keep their place and stay empty. box: how many of its first rows and
    columns are hatched and framed together; box_note is read out to whoever points at one of their
    cells.

    Raises: ValueError for more or fewer axes than dimensions, shapes that differ, more than 4
    dimensions, or more filled rows or columns, or more in the box, than the tensor has.
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
    made: Made | None = None
    quantity: Quantity = ""
    mark: tuple[tuple[int, ...], ...] = ()
    positions: tuple[Sequence[int], ...] | None = None
    whole: tuple[int, ...] | None = None
    note: str = ""
    filled: tuple[int, int] | None = None
    box: tuple[int, int] | None = None
    box_note: str = ""

    def __post_init__(self) -> None:
        """Refuse a panel whose parts do not fit its tensor."""
        shape = self.values.shape
        if not 1 <= len(shape) <= 4:
            raise ValueError(f"{self.name} has {len(shape)} dimensions, 1 to 4 can be drawn")
        if len(self.axes) != len(shape):
            raise ValueError(f"{self.name} has {len(shape)} dimensions but {len(self.axes)} axes")
        for identities in (self.cells, self.groups):
            if identities is not None and identities.shape != shape:
                raise ValueError(
                    f"{self.name} is {shape} but its identities are {identities.shape}"
                )
        if self.made is not None and self.made.operands.shape[:-2] != shape:
            raise ValueError(f"{self.name} is {shape}, its operands {self.made.operands.shape}")
        if self.positions is not None and tuple(map(len, self.positions)) != shape:
            raise ValueError(
                f"{self.name} is {shape} but its positions are {tuple(map(len, self.positions))}"
            )
        for part in (self.filled, self.box):
            sizes = (1, *shape)[-2:]
            if part is not None and not all(map(lambda n, of: 0 <= n <= of, part, sizes)):
                raise ValueError(f"{self.name} is {shape}: it has no part of {part}")
        named = (
            (self.columns, shape[-1]),
            (self.rows, shape[-2:][0]),
            (self.blocks, shape[-3:][0]),
        )
        for labels, size in named:
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
        """The shape in words: "batch of 1 × 2 heads × 3 tokens × 3 columns"."""
        whole = self.values.shape if self.whole is None else self.whole
        part = self.values.shape if self.filled is None else self.filled
        drawn_part = "" if whole == part else f"; drawn: {' × '.join(map(str, part))}"
        return sizes(self.axes, whole) + drawn_part


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
    """Draw the panels beside each other, wrapping where the page is narrow.

    colour: "value" goes from blue (negative) to orange (positive), with one scale for each panel;
    weights have one of their own. "identity" gives a cell the colour of its identity, whatever it
    holds, but for scores and weights. `palette` is then (rows, width), and `hue` what a row of it
    is: identity i has the hue of row `i // width` and the shade of column `i % width`;
    up to seven hues are those that colour-blind people can tell apart.
    link: pictures on one page with the same link light up together; lines lead across them.
    scene: names what is drawn; where the picture that stood here before had another name, numbers
    that were only moved fly from where a linked picture draws them, and of computed ones each in
    turn frames what it is computed from. Not for visitors who asked for less motion. speed: 2.0 is
    twice as fast.

    Raises: ValueError when there are more than `MAX_CELLS` cells.
    """
    count = sum(panel.values.size for panel in panels)
    if count > MAX_CELLS:
        raise ValueError(f"{count} cells are too many to draw; {MAX_CELLS} is the limit")
    options = {"colour": colour, "decimals": decimals, "palette": palette, "hue": hue}
    _canvas.draw(pack(panels, **options, link=link, scene=scene, speed=speed), key=key)


def pack(panels: Sequence[Panel], **options: Any) -> bytes:
    """What the browser receives: a header, then the numbers of each panel.

    They are its values as float32 and, where it has them, its cells and groups as int32, the
    operands of its numbers and what was added to them as float32.
    """
    parts: list[np.ndarray] = []
    described = []
    named: dict[str, list[str]] = {}  # the names of the panels, by what is said of them
    for panel in panels:
        named.setdefault(sentence(panel.axes), []).append(panel.name)
        parts.append(panel.values.astype("<f4"))
        parts += [ids for ids in (panel.cells, panel.groups) if ids is not None]
        made = panel.made
        if made is not None:
            parts += [made.operands] if made.added is None else [made.operands, made.added]
        described.append(
            {
                "name": panel.name,
                "shape": panel.values.shape,
                "axes": panel.axes,
                "rows": _listed(panel.rows),
                "columns": _listed(panel.columns),
                "blocks": _listed(panel.blocks),
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
    alike = len(named) == 1
    says = " ".join(text if alike else f"{', '.join(of)}: {text}" for text, of in named.items())
    return pack_arrays({**options, "says": says, "panels": described}, *parts)


def _listed(labels: Labels | None) -> list[Any] | None:
    if labels is None:
        return None
    return [label if isinstance(label, str) else list(label) for label in labels]
