"""All heads of a model in one picture, drawn on a canvas in the browser.

There are two components, so that frequent changes stay small. `mosaic` sends the values, and
`arrange` sends the visitor's settings: order, colors, hidden keys and the open head. It refers to
the mosaic by its key and sends only a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from ui.canvas.component import Canvas
from ui.canvas.mosaic.packing import PackedMosaic

ARRANGE_JS = Path(__file__).with_name("arrange.js").read_text(encoding="utf-8")

_PARTS = ("tile_codes", "tile_layout", "tile_images", "tile_paint", "tile_readout")
canvas = Canvas("mosaic", *_PARTS)
_arrange = st.components.v2.component("attention_mosaic_arrange", js=ARRANGE_JS)


@dataclass(frozen=True)
class Arrangement:
    """Which values are drawn, and how.

    order: head indices (layer * H + head) in drawing order; None is the grid of layers by heads.
    captions: the text below each head's tile, by head index; may be empty. selected: the index of
    the open head. scale: the value of the brightest color; None uses each head's largest value.
    square_root: square-root colors, which make small values visible. threshold: smaller values
    aren't drawn. hidden: keys that aren't drawn. large: large tiles in a scrolling frame, in which
    cells can be pointed at.
    """

    selected: int
    order: Sequence[int] | None = None
    captions: Sequence[str] = ()
    scale: float | None = None
    square_root: bool = True
    threshold: float = 0.0
    hidden: Sequence[int] = ()
    large: bool = False

    def to_dict(self, mosaic: str) -> dict[str, Any]:
        """The arrangement as data for the browser, for the mosaic with this key."""
        return {"mosaic": mosaic, **asdict(self)}


def mosaic(packed: PackedMosaic, *, key: str, on_open: Callable[[int], None]) -> None:
    """Draw all heads. on_open: called with the index of the head that the visitor opens."""

    def opened() -> None:
        number = st.session_state[key].get("open")
        n_heads = packed.shape[0] * packed.shape[1]
        # it comes from the browser, so it may be anything
        if isinstance(number, int) and 0 <= number < n_heads:
            on_open(number)

    canvas.draw(packed.data, key=key, on_open_change=opened)


def arrange(arrangement: Arrangement, *, key: str) -> None:
    """Change the arrangement of the mosaic with this key."""
    _arrange(data=arrangement.to_dict(key), key=f"{key}_arrangement", height=1)
