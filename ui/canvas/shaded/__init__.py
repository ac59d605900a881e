"""A text drawn as tokens, each shaded by a number, usually a query's attention weight.

The text may come from a visitor or a model, so it reaches the page as text, never as markup. A bar
below each token shows the same number as its color. Hovering or using the arrow keys shows the
exact number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ui.canvas.component import Canvas

MAX_TOKENS = 4_000


_canvas = Canvas("shaded")


@dataclass(frozen=True)
class ShadedToken:
    """One token with its label and number.

    value: its number, or None. detail: a text shown with the number. framed: "asks" for the query,
    "chosen" for the token that was generated from it. is_future: the token is generated later, so
    its space is left empty. line_after: whether the next token starts a new line.
    """

    label: str
    value: float | None = None
    detail: str = ""
    framed: str = ""
    is_future: bool = False
    line_after: bool = False


def shaded_tokens(
    tokens: Sequence[ShadedToken],
    *,
    largest: float,
    square_root: bool,
    title: str,
    hint: str,
    key: str,
) -> None:
    """Draw the tokens in reading order, shaded from 0 to `largest`, with line breaks where needed.

    square_root: shade by the square root of the value, which makes small ones visible. hint: help
    on how to use the picture.
    Raises: ValueError for more than `MAX_TOKENS` tokens, or if `largest` isn't positive.
    """
    data = pack(tokens, largest=largest, square_root=square_root, title=title, hint=hint)
    _canvas.draw(data, key=key)


def pack(
    tokens: Sequence[ShadedToken], *, largest: float, square_root: bool, title: str, hint: str
) -> bytes:
    """Encode the tokens as JSON for the browser; float32 values stay exact."""
    if len(tokens) > MAX_TOKENS:
        raise ValueError(f"{len(tokens)} tokens are too many to draw; the limit is {MAX_TOKENS}")
    if not largest > 0:
        raise ValueError(f"the largest value must be positive, got {largest}")
    rows = [[t.label, t.value, t.detail, t.framed, t.is_future, t.line_after] for t in tokens]
    caption = (
        "Each box is a token, in reading order. The brighter it is, the more attention the framed "
        "token gives to it."
    )
    scale = {"largest": largest, "squareRoot": square_root}
    header = {"title": title, "says": caption, "hint": hint, **scale}
    return json.dumps({**header, "tokens": rows}).encode()
