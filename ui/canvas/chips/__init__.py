"""A text drawn as its tokens: coloured chips whose details are read by pointing or by keyboard.

All text reaches the page as text, never as markup: it may come from a visitor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ui.canvas.component import Canvas

MAX_CHIPS = 4_000


_canvas = Canvas("chips")


@dataclass(frozen=True)
class Chip:
    """A token, or a word: the text on its chip, and the details that pointing at it shows.

    quiet: drawn without a colour (a token that was added). chosen: drawn with a frame.
    line_after: the next chip begins a new line.
    """

    label: str
    detail: str
    quiet: bool = False
    chosen: bool = False
    line_after: bool = False


def chips(
    items: Sequence[Chip], *, title: str, key: str, hint: str = "", a_box: str = "a token"
) -> None:
    """Draw the chips in reading order, wrapping where the page is narrow.

    a_box: what each chip is. hint: what the line below says while nothing is pointed at.
    Raises: ValueError when there are more than `MAX_CHIPS`.
    """
    if len(items) > MAX_CHIPS:
        raise ValueError(f"{len(items)} chips are too many to draw; {MAX_CHIPS} is the limit")
    _canvas.draw(pack(items, title=title, hint=hint, a_box=a_box), key=key)


def pack(items: Sequence[Chip], *, title: str, hint: str, a_box: str = "a token") -> bytes:
    """What the browser receives: one JSON text in bytes."""
    rows = [[item.label, item.detail, item.quiet, item.chosen, item.line_after] for item in items]
    says = f"A box is {a_box}, in reading order. Colours only tell neighbours apart."
    return json.dumps({"title": title, "says": says, "hint": hint, "chips": rows}).encode()
