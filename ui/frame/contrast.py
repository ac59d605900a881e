"""Readable colours where Streamlit's own have too little contrast and no option of the theme."""

from __future__ import annotations

from pathlib import Path

import streamlit as st


def apply() -> None:
    """Give the page the style sheet beside this file; it takes no room."""
    st.html(Path(__file__).with_suffix(".css"))
