"""One entry in the browser's history for every page that a visitor opens: see history.js."""

from pathlib import Path

import streamlit as st

_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")

one_entry_a_page = st.components.v2.component("attention_history", js=_SCRIPT)
