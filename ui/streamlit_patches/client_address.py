"""The network address of the visitor whose page run this thread executes."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from serving.addresses import network_prefix


def client_address() -> str | None:
    """The visitor's network as used for rate limits; None if unknown or outside a page run."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    known = st.context.ip_address
    return None if known is None else network_prefix(known)
