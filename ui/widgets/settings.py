"""A button that opens the settings of a page, so that the picture stands first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui.widgets.linked import changed, isolated_defaults


@contextmanager
def settings(label: str = "Settings") -> Iterator[None]:
    """Put the widgets made inside the `with` behind a button; beside it: how many were changed.

    Its place is a row: a container that is `horizontal`.
    """
    opened, count = st.popover(label, icon=":material/tune:"), st.empty()
    with opened, isolated_defaults() as inside:
        yield
    if n_changed := len(changed(inside)):
        count.markdown(f":small[:blue-badge[{n_changed} changed]]")
