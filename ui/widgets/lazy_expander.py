"""A collapsed section that is rendered only once the visitor opens it."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui.widgets import messages


@st.fragment
def lazy_expander(title: str, key: str, show: Callable[..., Any], *arguments: Any) -> None:
    """Show a collapsed section. `show(*arguments)` renders it from the first time it's opened."""
    with st.expander(title, key=key, on_change="rerun") as part:
        opened = f"{key}_opened"
        if part.open or opened in st.session_state:  # closing it again keeps its widgets
            st.session_state[opened] = True
            with messages.page_guard():
                show(*arguments)
