"""Clean text fields, so that the model reads exactly the text that the visitor sees.

Links, other pages and programs can set a field to any characters. In a single-line field, browsers
drop line breaks and show other control characters as a space or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.elements.widgets.text_widgets import TextAreaSerde, TextInputSerde

_INVISIBLE_IN_LINE = re.compile("\r\n|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LINE_BREAK = re.compile("\r\n?")


def one_line(text: str) -> str:
    """Replace each line break and control character with a space, for single-line fields."""
    return _INVISIBLE_IN_LINE.sub(" ", text)


def lines(text: str) -> str:
    r"""Normalize line breaks to "\n", as browsers do in multiline fields."""
    return _LINE_BREAK.sub("\n", text)


_VISIBLE = {st.text_input: one_line, st.text_area: lines}


def visible(widget: Callable[..., Any], value: Any) -> Any:
    """A value in the form that the widget can show; only text fields change it."""
    return _VISIBLE[widget](value) if widget in _VISIBLE and isinstance(value, str) else value


def _clean_values(serde: type[Any], clean: Callable[[str], str]) -> None:
    """Clean every value that a text field of this kind gets from an address or a browser."""
    deserialize = serde.deserialize

    def cleaned(self: Any, ui_value: str | None) -> str | None:
        text: str | None = deserialize(self, None if ui_value is None else clean(ui_value))
        return text

    serde.deserialize = cleaned


# Streamlit has no option for this. On the first run the address overrides whatever a page sets, so
# the value must be cleaned where Streamlit reads it. Streamlit then corrects the address, too.
_clean_values(TextInputSerde, one_line)
_clean_values(TextAreaSerde, lines)
