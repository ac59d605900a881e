"""What a visitor chose goes along to the other pages: the text, the model, a layer and a head.

A widget that has a part in the visit shows, when its page is opened, what the visitor chose last on
any page. An address that names a value wins, and becomes the visitor's choice. What a page cannot
take (a layer that its model does not have) stays chosen for the pages that can.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

TEXT, MODEL, LAYER, HEAD = "text", "model", "layer", "head"

# keys of the session: what was chosen; the page that is open, and how often one was opened; with
# which opening a widget was seen last, and with which value
_CHOSEN, _PAGE, _OPENINGS, _SEEN = (
    f"visit_{name}" for name in ("chosen", "page", "openings", "seen")
)


def open_page(page: str) -> None:
    """Tell which page runs. What was chosen elsewhere is shown on the first run of each opening."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE] = page
        st.session_state[_OPENINGS] = st.session_state.get(_OPENINGS, 0) + 1


def chosen(part: str) -> Any:
    """What the visitor chose for a part of the visit; None if nothing."""
    return st.session_state.get(_CHOSEN, {}).get(part)


def bring(key: str, value: Any, choices: Container[object] | None = None) -> None:
    """Give a widget, before it is made, a value that was chosen on another page; None: nothing.

    choices: what the widget can take; None: every value.
    """
    if value is None or _is_seen(key) or key in st.query_params:
        return
    if choices is None or value in choices:
        st.session_state[key] = value
        # Streamlit writes such a value into the address only if it knows the widget; then it lets
        # nobody else write it
        with suppress(StreamlitAPIException):
            st.query_params[key] = value if isinstance(value, list) else str(value)


def keep(part: str, key: str, value: Any) -> None:
    """Take a widget's value as the visitor's choice if an address named it or it was changed.

    Whoever chose a layer chose the head that is shown with it, and the other way round.
    """
    seen = st.session_state.setdefault(_SEEN, {})
    choice = st.session_state.setdefault(_CHOSEN, {})
    changed = seen[key][1] != value if _is_seen(key) else key in st.query_params
    partner = {LAYER: HEAD, HEAD: LAYER}.get(part)
    if changed or (partner in choice and part not in choice):
        choice[part] = value
    seen[key] = (st.session_state.get(_OPENINGS), value)


def _is_seen(key: str) -> bool:
    """Whether the widget was made since its page was opened."""
    seen = st.session_state.get(_SEEN, {})
    return key in seen and seen[key][0] == st.session_state.get(_OPENINGS)
