"""The address of a page, and its parameters: the text of a value, and the value of a text.

A list is one parameter an element, and an empty parameter when it is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any


def address(folder: str) -> str:
    """The address of the page in a folder of `pages/`: "learn/two_networks" has "two-networks"."""
    return folder.rpartition("/")[2].replace("_", "-")


def page_url(url: str, addresses: Iterable[str]) -> str:
    """The whole address of a page without its parameters, from what Streamlit says it is.

    Streamlit cuts off the first page's address with which a whole address ends, and puts the right
    one behind what is left: of "generated-tokens" it cuts off "tokens", and of
    "https://lab.example.org/generated-/generated-tokens" only the last part is right.
    addresses: of all pages.
    """
    before, _, page = url.partition("?")[0].rpartition("/")
    left_over = before.rpartition("/")[2]
    if left_over and any(left_over + address == page for address in addresses):
        before = before.rpartition("/")[0]
    return f"{before}/{page}" if before else page


def say(texts: Sequence[str], value: object) -> bool:
    """Whether the texts of a parameter mean this value of a widget."""
    if isinstance(value, list):
        return [text for text in texts if text] == [str(element) for element in value]
    text = texts[-1]
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == ("" if value is None else str(value))


def written(value: object) -> list[str]:
    """The texts of a parameter for a value of a widget, as `read` reads them."""
    elements = (value or [""]) if isinstance(value, list) else [value]
    return [_text(element) for element in elements]


def read(texts: Sequence[str], like: Any) -> Any:
    """The value that the texts of a parameter mean, of the type of `like`.

    Texts that mean `like`, or no value of its type, give `like` itself.
    """
    if say(texts, like):
        return like
    if isinstance(like, list):
        return [text for text in texts if text]
    if isinstance(like, bool):
        return not like if say(texts, not like) else like
    text = texts[-1]
    if isinstance(like, int | float):
        with suppress(ValueError):
            value = type(like)(text)
            return value if math.isfinite(value) else like
        return like
    return text or None if like is None else text


def _text(value: object) -> str:
    """The text for one value, or for one element of a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return "" if value is None else str(value)
