"""The parameters of a page's address: the text of a value, and the value of a text.

A list is one parameter an element, and an empty parameter when it is empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


def says(text: str, value: object) -> bool:
    """Whether the text of a parameter means this value of a widget."""
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == ("" if value is None else str(value))


def written(value: object) -> str:
    """The text for one value, or for one element of a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return "" if value is None else str(value)


def read(texts: Sequence[str], like: Any) -> Any:
    """The value that the texts of a parameter mean, of the type of `like`.

    Texts that mean `like`, or no value of its type, give `like` itself.
    """
    if isinstance(like, list):
        named = [text for text in texts if text]
        return like if named == [str(element) for element in like] else named
    text = texts[-1]
    if says(text, like):
        return like
    if isinstance(like, bool):
        return not like if says(text, not like) else like
    if isinstance(like, int | float):
        with suppress(ValueError):
            value = type(like)(text)
            return value if math.isfinite(value) else like
        return like
    return text or None if like is None else text
