"""A button that opens a page's settings, so that the picture comes first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui.widgets.linked import changed, isolated_defaults


@contextmanager
def settings(label: str = "Settings") -> Iterator[None]:
    """Show the widgets created inside the `with` in a popover with a badge for changes.

    Call this inside a horizontal container.
    """
    opened, count = st.popover(label, icon=":material/tune:"), st.empty()
    with opened, isolated_defaults() as inside:
        yield
    if n_changed := len(changed(inside)):
        count.markdown(f":small[:blue-badge[{n_changed} changed]]")
