"""From where the visitor comes for whom a thread runs a page."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving.pace import network


def address() -> str | None:
    """As `serving.pace` counts addresses; None where nobody knows, and outside of any page."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    known = st.context.ip_address
    return None if known is None else network(known)
