"""A text drawn as colored chips, one per token, with details on hover or by keyboard.

The text may come from a visitor, so it reaches the page as text, never as markup.
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
    """A token or a word. label: the text on its chip. detail: the text shown on hover.

    muted: drawn without a color, for tokens added by the tokenizer. selected: drawn with a frame.
    line_after: whether the next chip starts a new line.
    """

    label: str
    detail: str
    muted: bool = False
    selected: bool = False
    line_after: bool = False


def chips(
    items: Sequence[Chip], *, title: str, key: str, hint: str = "", item_name: str = "a token"
) -> None:
    """Draw the chips in reading order, with line breaks where needed.

    item_name: what each chip is. hint: the text below the chips while none is selected.
    Raises: ValueError if there are more than `MAX_CHIPS`.
    """
    if len(items) > MAX_CHIPS:
        raise ValueError(f"{len(items)} chips are too many to draw; the limit is {MAX_CHIPS}")
    _canvas.draw(pack(items, title=title, hint=hint, item_name=item_name), key=key)


def pack(items: Sequence[Chip], *, title: str, hint: str, item_name: str = "a token") -> bytes:
    """Encode the chips as JSON for the browser."""
    rows = [[item.label, item.detail, item.muted, item.selected, item.line_after] for item in items]
    caption = f"Each box is {item_name}, in reading order. The colors only separate neighbors."
    return json.dumps({"title": title, "says": caption, "hint": hint, "chips": rows}).encode()
