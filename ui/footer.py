"""The way on: at the end of a lesson, a link to the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st


def next_lesson(lessons: Sequence[Any], current: Any) -> None:
    """Link to the `st.Page` after the current one, if that is a lesson and not the last."""
    places = [place for place, lesson in enumerate(lessons[:-1]) if lesson == current]
    for place in places:
        following = lessons[place + 1]
        st.page_link(following, label=f"Next: {following.title}", icon=":material/arrow_forward:")
