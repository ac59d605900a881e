"""One entry in the browser's history for every page that a visitor opens."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_component = st.components.v2.component(
    "attention_history", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def one_entry_a_page() -> None:
    """Have changes of the open page's address replace its entry; takes no room above the page."""
    _component(key="history")
