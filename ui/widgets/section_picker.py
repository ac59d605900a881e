"""The parts of a page below its picture; only the selected part is computed and shown."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.widgets.linked import linked

ALL_SECTIONS = "Everything"  # shows all parts, for printing or searching


def section_picker(key: str, names: Sequence[str]) -> tuple[str, ...]:
    """Show a row of buttons for the parts, and return the names of the parts to show.

    The first part is the default, and the selection is in the address. Parts that aren't selected
    are neither computed nor sent.
    """
    choice = linked(
        st.segmented_control,
        "Part of the page",
        [*names, ALL_SECTIONS],
        default=names[0],
        required=True,
        key=key,
        label_visibility="collapsed",
        wrap=True,
    )
    return tuple(names) if choice == ALL_SECTIONS else (choice,)


def section_heading(name: str, sections: Sequence[str]) -> None:
    """Show a part's heading, unless it's the only part: then the row above names it."""
    if len(sections) > 1:
        st.subheader(name)
