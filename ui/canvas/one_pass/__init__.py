"""One whole pass of a model as one picture that can be opened, drawn in the browser.

Two components: `one_pass` carries what the picture shows at once, and `opened` the numbers of the
layer and head that were opened in it. They meet in the browser by the picture's name, so that to
open a head sends that head alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import streamlit as st

from ui.canvas.component import Canvas, script
from ui.canvas.component import pack as pack_arrays
from ui.canvas.one_pass.picture import PassPicture

SAYS = (
    "A line is a token on its way through all layers. A curve is what attention carries from one "
    "token to another, as thick as it matters; a dot is what the feed-forward network adds. What "
    "leads to the selected word is dark."
)
DEFAULTS: Mapping[str, Any] = {"says": SAYS, "off": [], "place": None, "away": None, "play": None}
_PARTS = (
    *("layout", "flow", "curves", "images", "walk", "ghosts", "next"),
    *("paint", "paint_flow", "writing", "pointer", "read", "why", "story"),
    *("play", "present", "swipe"),
)
canvas = Canvas("one_pass", *_PARTS)
_opened = st.components.v2.component("attention_opened", js=script("one_pass", "opened"))


def one_pass(
    picture: PassPicture, header: Mapping[str, Any], *, key: str, **callbacks: Callable[[], None]
) -> None:
    """Draw a pass; `header` as of `whole`.

    callbacks: `on_place_change`, when the visitor has walked somewhere, `on_switched_change`, when
    a part is switched ("F3 L3H1", or "nothing" when all are on), `on_followed_change` on a token.
    """
    canvas.draw(whole(picture, header), key=key, **callbacks)


def whole(picture: PassPicture, header: Mapping[str, Any]) -> bytes:
    """A pass as the browser gets it.

    header: what is drawn differently: `picture`, the name by which `opened` finds it; `off`, the
    parts that are switched off; `place`, where the visitor stands; `away`, the text and the model
    with which a page of its own is opened for whoever walks in; `play`, the passes of a model that
    writes on; `temperature` and `topK` at first; `lookOnly`, True where nothing can be switched;
    `follow`, True where a click on a token chooses it.
    """
    all_of_it = {**DEFAULTS, **picture.header, **header}
    return packed(all_of_it, picture.numbers, picture.codes)


def opened(header: Mapping[str, Any], numbers: Mapping[str, np.ndarray], *, key: str) -> None:
    """Hand an opened layer and head to the picture that its header names."""
    _opened(data=packed(header, numbers), key=key)


def packed(
    header: Mapping[str, Any], numbers: Mapping[str, np.ndarray], codes: bytes = b""
) -> bytes:
    """A header, float32 arrays by their names, and bytes behind them."""
    shapes = [[name, list(array.shape)] for name, array in numbers.items()]
    body = b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in numbers.values())
    return pack_arrays({**header, "arrays": shapes}, body + codes)
