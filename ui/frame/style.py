"""The style sheet of all pages, for what no option of the theme decides."""

from __future__ import annotations

from pathlib import Path

import streamlit as st


def apply() -> None:
    """Give the page the style sheet; it takes no room."""
    st.html(Path(__file__).with_suffix(".css"))
