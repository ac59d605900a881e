"""The parts of a page below its picture, of which one at a time is made and shown."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.widgets.linked import linked

EVERYTHING = "Everything"  # all parts one below the other: to print, or to search in


def parts(key: str, names: Sequence[str]) -> tuple[str, ...]:
    """A row to choose a part from, the first to begin with; the names of the parts to make.

    The choice is in the address. What belongs to no chosen part is neither computed nor sent.
    """
    chosen = linked(
        st.segmented_control,
        "Part of the page",
        [*names, EVERYTHING],
        default=names[0],
        required=True,
        key=key,
        label_visibility="collapsed",
        wrap=True,
    )
    return tuple(names) if chosen == EVERYTHING else (chosen,)


def heading(name: str, shown: Sequence[str]) -> None:
    """The heading of a part where several are shown; alone, it is named by the row above it."""
    if len(shown) > 1:
        st.subheader(name)
