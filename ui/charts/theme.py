"""Colors of the visitor's current theme, for pictures that Streamlit doesn't color."""

from __future__ import annotations

import streamlit as st


def ink() -> str:
    """The text color. Streamlit's own charts use a paler one, which is hard to read."""
    theme = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{theme}.textColor"))


def paper() -> str:
    """The background color."""
    theme = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{theme}.backgroundColor"))
