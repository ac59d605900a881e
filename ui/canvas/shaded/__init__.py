"""A text drawn as its tokens, each shaded by a number of its own: weights of one query, mostly.

All text reaches the page as text, never as markup: it may come from a visitor or a model. A bar
below each token says the same as its colour, and pointing or the arrow keys read the exact number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ui.canvas.component import Canvas

MAX_TOKENS = 4_000


_canvas = Canvas("shaded")


@dataclass(frozen=True)
class Shaded:
    """One token: its label, and what is known of it.

    value: its number, None for a token without one. detail: a text that is shown with the number.
    framed: "asks" for the query, "chosen" for the token that the query led to. later: the token
    comes later in the generation; its place is kept free and nothing is drawn there. line_after:
    the next token begins a new line.
    """

    label: str
    value: float | None = None
    detail: str = ""
    framed: str = ""
    later: bool = False
    line_after: bool = False


def shaded(
    tokens: Sequence[Shaded],
    *,
    largest: float,
    square_root: bool,
    title: str,
    hint: str,
    key: str,
) -> None:
    """Draw the tokens in reading order, shaded from 0 to `largest`, wrapping where it is narrow.

    square_root: shade by the root of the value, which makes small ones visible. hint: what the line
    below says while nothing is pointed at.
    Raises: ValueError for more than `MAX_TOKENS`, or a `largest` that is not positive.
    """
    data = pack(tokens, largest=largest, square_root=square_root, title=title, hint=hint)
    _canvas.draw(data, key=key)


def pack(
    tokens: Sequence[Shaded], *, largest: float, square_root: bool, title: str, hint: str
) -> bytes:
    """What the browser receives: one JSON text in bytes. A float32 is exact in it."""
    if len(tokens) > MAX_TOKENS:
        raise ValueError(f"{len(tokens)} tokens are too many to draw; {MAX_TOKENS} is the limit")
    if not largest > 0:
        raise ValueError(f"the largest value must be positive, got {largest}")
    rows = [[t.label, t.value, t.detail, t.framed, t.later, t.line_after] for t in tokens]
    says = "A box is a token, in reading order: the brighter, the more the framed one looks at it."
    scale = {"largest": largest, "squareRoot": square_root}
    header = {"title": title, "says": says, "hint": hint, **scale}
    return json.dumps({**header, "tokens": rows}).encode()
