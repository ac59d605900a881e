"""Text fields hold only what they can show, so that a model reads what the visitor sees.

Links, other pages and programs may bring any character. Browsers drop line breaks from a field of
one line and show other control characters as a blank or as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.elements.widgets.text_widgets import TextAreaSerde, TextInputSerde

_UNSEEN_IN_A_LINE = re.compile("\r\n|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LINE_BREAK = re.compile("\r\n?")


def one_line(text: str) -> str:
    """The text in a field of one line: a blank for each line break and control character."""
    return _UNSEEN_IN_A_LINE.sub(" ", text)


def lines(text: str) -> str:
    r"""The text in a field of several lines, with line breaks as browsers return them: "\n"."""
    return _LINE_BREAK.sub("\n", text)


_VISIBLE = {st.text_input: one_line, st.text_area: lines}


def visible(widget: Callable[..., Any], value: Any) -> Any:
    """What a widget can show of a value; only text fields change some texts."""
    return _VISIBLE[widget](value) if widget in _VISIBLE and isinstance(value, str) else value


def _clean_values(serde: type[Any], clean: Callable[[str], str]) -> None:
    """Have every value that an address or a browser gives to a kind of text field cleaned."""
    deserialize = serde.deserialize

    def cleaned(self: Any, ui_value: str | None) -> str | None:
        text: str | None = deserialize(self, None if ui_value is None else clean(ui_value))
        return text

    serde.deserialize = cleaned


# Streamlit has no option for this. In a first run the address wins over whatever a page sets, so
# that the value has to be cleaned where Streamlit reads it; then it corrects the address too.
_clean_values(TextInputSerde, one_line)
_clean_values(TextAreaSerde, lines)
