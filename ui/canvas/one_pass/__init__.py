"""A complete forward pass of a model as a picture that the visitor can zoom into.

There are two components. `one_pass` sends everything that the picture shows initially, and
`update_opened` sends the numbers of the layer and head that the visitor opened. It refers to the
picture by name, so opening a head sends only that head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import streamlit as st

from ui.canvas.component import Canvas, script
from ui.canvas.component import pack as pack_arrays
from ui.canvas.one_pass.picture import PassPicture

MESSAGES = (
    "Each line is a token on its way through the layers. The curves show what attention carries "
    "from one token to another; thicker curves matter more. The dots show what the feed-forward "
    "network adds. Everything that leads to the selected word is dark."
)
DEFAULTS: Mapping[str, Any] = {
    "says": MESSAGES,
    "off": [],
    "place": None,
    "away": None,
    "play": None,
}
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
    """Draw a pass. header: see `pack_pass`.

    callbacks: `on_place_change` is called when the visitor moves to another location,
    `on_switched_change` when they switch parts off or on ("F3 L3H1", or "nothing" if all are on),
    and `on_followed_change` when they follow a token.
    """
    canvas.draw(pack_pass(picture, header), key=key, **callbacks)


def pack_pass(picture: PassPicture, header: Mapping[str, Any]) -> bytes:
    """Encode a pass for the browser.

    header: `picture`, the name that `update_opened` refers to; `off`, the parts that are switched
    off; `place`, the visitor's location; `away`, the text and model for opening the "One pass" page
    from another page; `play`, the passes of a model that continues the text; `temperature` and
    `topK`, initial values; `lookOnly`, True if nothing can be switched off; `follow`, True if a
    click on a token selects it.
    """
    all_of_it = {**DEFAULTS, **picture.header, **header}
    return pack(all_of_it, picture.numbers, picture.codes)


def update_opened(
    header: Mapping[str, Any], numbers: Mapping[str, np.ndarray], *, key: str
) -> None:
    """Send an opened layer and head to the picture named in its header."""
    _opened(data=pack(header, numbers), key=key)


def pack(header: Mapping[str, Any], numbers: Mapping[str, np.ndarray], codes: bytes = b"") -> bytes:
    """Pack a header, named float32 arrays, and the codes."""
    shapes = [[name, list(array.shape)] for name, array in numbers.items()]
    body = b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in numbers.values())
    return pack_arrays({**header, "arrays": shapes}, body + codes)
