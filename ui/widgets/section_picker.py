"""The sections of a page below its picture; only the selected section is computed and shown."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.widgets.linked import linked

ALL_SECTIONS = "Everything"  # shows all sections, for printing or searching


def section_picker(key: str, names: Sequence[str]) -> tuple[str, ...]:
    """Show a row of buttons for the sections, and return the names of the sections to show.

    The first section is the default, and the selection is in the address. Sections that aren't
    selected are neither computed nor sent.
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
    """Show a section's heading, unless it's the only section, which the row above names."""
    if len(sections) > 1:
        st.subheader(name)
