"""A part of a page under its title, sent to the browser when somebody opens it."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui.widgets import messages


@st.fragment
def folded(title: str, key: str, show: Callable[..., Any], *arguments: Any) -> None:
    """A folded part. `show(*arguments)` draws in it, from when it is first opened on a visit."""
    with st.expander(title, key=key, on_change="rerun") as part:
        opened = f"{key}_opened"
        if part.open or opened in st.session_state:  # closed again it keeps what was chosen in it
            st.session_state[opened] = True
            with messages.page():
                show(*arguments)
