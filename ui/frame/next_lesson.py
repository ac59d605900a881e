"""A link to the next lesson, at the end of a lesson."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import streamlit as st


def next_lesson(lessons: Sequence[Any], current: Any) -> None:
    """Link to the `st.Page` after the current one, if that is a lesson and not the last."""
    for lesson, following in pairwise(lessons):
        if lesson == current:
            label = f"Next: {following.title}"
            st.page_link(following, label=label, icon=":material/arrow_forward:")
