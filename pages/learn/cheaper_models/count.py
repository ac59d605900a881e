"""A slider for how many there are of something."""

from __future__ import annotations

import streamlit as st

from ui.widgets.linked import linked


def count(label: str, key: str, most: int, default: int, help: str = "") -> int:
    """A slider from 1 to `most`, which may change: a larger number becomes `most`."""
    if st.session_state.get(key, 1) > most:
        st.session_state[key] = most
    chosen: int = linked(
        st.select_slider,
        label,
        range(1, most + 1),
        min(default, most),
        key=key,
        help=help or None,
        disabled=most == 1,
    )
    return chosen
