"""The link to the next page at the end of each page."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise
from typing import Any

import streamlit as st

UNORDERED_PAGES = ("glossary", "exercise-sheet")  # these pages aren't part of the sequence


def next_page(sections: Iterable[Iterable[Any]], current: Any) -> None:
    """Link to the next page in the navigation, skipping those in `UNORDERED_PAGES`."""
    pages = [page for page in chain.from_iterable(sections) if page.url_path not in UNORDERED_PAGES]
    for page, after in pairwise(pages):
        if page == current:
            st.page_link(after, label=f"Next: {after.title}", icon=":material/arrow_forward:")
