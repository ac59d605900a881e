"""Widgets whose value is in the page's address, so that every view is a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui.widgets.visit import bring, current

# The keys of all widgets that were ever linked. There are no more of them than the pages name.
_keys: set[str] = set()


def linked(
    widget: Callable[..., Any],
    label: str,
    *arguments: Any,
    key: str,
    part: str | None = None,
    **options: Any,
) -> Any:
    """A Streamlit widget bound to the address parameter `key`, with the widget's own arguments.

    part: which part of the visit it shows and changes (`ui.widgets.visit`), if any.
    Where a link gives it a value that it cannot take, the widget shows its default and says so.
    """
    _keys.add(key)
    if part is not None:
        first, *rest = arguments or (options["value"],)
        choices = None if isinstance(first, str) else first  # it chooses, or writes a text
        default = rest[0] if rest else first if choices is None else choices[options["index"]]
        bring(key, current().chosen.get(part), choices=choices, default=default)
    # later the address follows the widget: only its first value can be one that does not fit
    address_values = [] if key in st.session_state else st.query_params.get_all(key)
    value = widget(label, *arguments, key=key, bind="query-params", **options)
    if value is None and options.get("required"):
        value = options["default"]  # Streamlit clears even these for an empty parameter
    # a list is one parameter an element, and an empty parameter when it is empty
    if isinstance(value, list):
        in_address = [text for text in address_values if text]
        refused = bool(address_values) and in_address != [str(element) for element in value]
    else:
        refused = bool(address_values) and not says(address_values[-1], value)
    if refused:
        st.toast(
            f"The link gives “{label}” a value that it cannot take here; it is left out.",
            icon=":material/link_off:",
            duration="long",
        )
    if part is not None:
        current().keep(part, key, value, named=key in st.query_params)
    return value


def says(text: str, value: object) -> bool:
    """Whether the text of an address parameter means this value of a widget."""
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == ("" if value is None else str(value))


def address(prefix: str) -> list[tuple[str, str]]:
    """The parameters of a link that sets the linked widgets `<prefix>_...` to what they are now.

    As `linked` reads them: a list is one parameter an element, and an empty one when it is empty.
    """
    parameters = []
    for key in sorted(_keys):
        if key.startswith(f"{prefix}_") and key in st.session_state:
            value = st.session_state[key]
            for element in (value or [""]) if isinstance(value, list) else [value]:
                parameters.append((key, _written(element)))
    return parameters


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return "" if value is None else str(value)
