"""The visit of whoever looks at the page, and the widgets that show and change it."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving import visit
from serving.visit import Visit


def current() -> Visit:
    """The visit of this session."""
    visitor: Visit = st.session_state.setdefault("visit", Visit())
    return visitor


def waits(what: str, where: str = "on the other pages") -> None:
    """Say, where the sentence of the visit is not used, what is computed with, and where it is."""
    if visit.TEXT in current().chosen:
        st.markdown(f":small[This page computes with {what}; your sentence waits {where}.]")


def bring(
    key: str,
    value: Any,
    *,
    choices: Container[object] | None,
    default: Any = None,
    again: bool = False,
) -> None:
    """Give a widget, before it is made, a value that was chosen on another page; None: nothing.

    choices: what the widget can take; None: every value. default: what its address leaves out.
    again: the value is what the widget itself held, in another part of the same page.
    Who goes back or forward in the history of the browser finds the page as its address says.
    """
    context = get_script_run_ctx()
    if context is not None and context.is_history_navigation:
        return
    values = value if isinstance(value, list) else [value]
    fits = value is not None and (choices is None or all(one in choices for one in values))
    if not fits or (current().is_seen(key) and not again) or key in st.query_params:
        return
    st.session_state[key] = value
    # Streamlit writes such a value into the address only if it knows the widget; then it lets
    # nobody else write it
    with suppress(StreamlitAPIException):
        if value != default:
            st.query_params[key] = value if isinstance(value, list) else str(value)
