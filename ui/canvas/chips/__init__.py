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

    quiet: drawn without a color, for tokens added by the tokenizer. chosen: drawn with a frame.
    line_after: whether the next chip starts a new line.
    """

    label: str
    detail: str
    quiet: bool = False
    chosen: bool = False
    line_after: bool = False


def chips(
    items: Sequence[Chip], *, title: str, key: str, hint: str = "", a_box: str = "a token"
) -> None:
    """Draw the chips in reading order, with line breaks where needed.

    a_box: what each chip is. hint: the text below the chips while none is selected.
    Raises: ValueError if there are more than `MAX_CHIPS`.
    """
    if len(items) > MAX_CHIPS:
        raise ValueError(f"{len(items)} chips are too many to draw; the limit is {MAX_CHIPS}")
    _canvas.draw(pack(items, title=title, hint=hint, a_box=a_box), key=key)


def pack(items: Sequence[Chip], *, title: str, hint: str, a_box: str = "a token") -> bytes:
    """Encode the chips as JSON for the browser."""
    rows = [[item.label, item.detail, item.quiet, item.chosen, item.line_after] for item in items]
    says = f"Each box is {a_box}, in reading order. The colors only separate neighbors."
    return json.dumps({"title": title, "says": says, "hint": hint, "chips": rows}).encode()
