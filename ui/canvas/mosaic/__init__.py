"""Every layer and head of a model as one picture, drawn in the browser on a canvas.

Two components, so that what changes often is small: `mosaic` carries the values, and `arrange`
carries what the visitor does with them: order, colours, what is left out, which head is open. They
meet in the browser by the mosaic's key; arranging sends a few kilobytes and no values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from ui.canvas.component import Canvas
from ui.canvas.mosaic.packing import Packed

ARRANGE_JS = Path(__file__).with_name("arrange.js").read_text(encoding="utf-8")

_PARTS = ("tile_codes", "tile_places", "tile_images", "tile_paint", "tile_reading")
canvas = Canvas("mosaic", *_PARTS)
_arrange = st.components.v2.component("attention_mosaic_arrange", js=ARRANGE_JS)


@dataclass(frozen=True)
class Arrangement:
    """What is drawn of the values, and how.

    order: numbers of heads (layer * H + head), first to last; None is the grid of layers by heads.
    captions: for each head its text below the tile, by its number; may be empty.
    selected: the number of the open head. scale: the value of the brightest colour, None for each
    head's own largest. square_root: colours by the root, which shows small values. threshold:
    smaller values are not drawn. hidden: keys that are left out. large: tiles in which a cell can
    be pointed at, in a frame that scrolls.
    """

    selected: int
    order: Sequence[int] | None = None
    captions: Sequence[str] = ()
    scale: float | None = None
    square_root: bool = True
    threshold: float = 0.0
    hidden: Sequence[int] = ()
    large: bool = False

    def of(self, mosaic: str) -> dict[str, Any]:
        """The arrangement as the browser receives it, for the mosaic with this key."""
        return {"mosaic": mosaic, **asdict(self)}


def mosaic(packed: Packed, *, key: str, on_open: Callable[[int], None]) -> None:
    """Draw all heads. `on_open` is called with the number of the head that the visitor opens."""

    def opened() -> None:
        number = st.session_state[key].get("open")
        n_heads = packed.shape[0] * packed.shape[1]
        # the browser sends it: anything may arrive
        if isinstance(number, int) and 0 <= number < n_heads:
            on_open(number)

    canvas.draw(packed.data, key=key, on_open_change=opened)


def arrange(arrangement: Arrangement, *, key: str) -> None:
    """Arrange the mosaic with this key; draws nothing itself."""
    _arrange(data=arrangement.of(key), key=f"{key}_arrangement", height=1)
