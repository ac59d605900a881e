"""From where the visitor comes for whom a thread runs a page."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving.addresses import network_of


def address() -> str | None:
    """The network that shares the visitor's limits; None if unknown, and outside of any page."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    known = st.context.ip_address
    return None if known is None else network_of(known)
