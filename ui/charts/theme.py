"""The colours of the theme that the visitor sees, for pictures that Streamlit does not colour."""

from __future__ import annotations

import streamlit as st


def ink() -> str:
    """The text colour; Streamlit's own charts use a paler one, too pale to read easily."""
    theme = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{theme}.textColor"))


def paper() -> str:
    """The background colour."""
    theme = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{theme}.backgroundColor"))
