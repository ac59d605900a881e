"""Callbacks that copy actions in the picture to the page's settings and URL."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.start.one_pass.walk import walk
from pages.start.one_pass.writing import ALL, FIRST_NEW
from pretrained import CatalogEntry
from serving.flow import Carried
from serving.heads import HeadId
from serving.one_pass import OnePass
from ui.widgets import controls
from ui.widgets.head_choice import HeadChoice


def of(key: str, passed: OnePass | None = None) -> dict[str, Callable[[], None]]:
    """The callbacks of the picture `key`. passed: the pass shown, None while loading."""
    return {
        "on_place_change": partial(walk, "one_pass", key, passed),
        "on_switched_change": partial(switch, key),
        "on_sampled_change": partial(sample, key),
        "on_written_change": partial(write, key),
    }


def head(entry: CatalogEntry, first: Carried | None) -> HeadChoice:
    """The layer and head to open: the visitor's choice, or the default for this text."""
    middle = HeadId(entry.spec.n_layers // 2, 0)
    named = middle if first is None else HeadId(first.layer, first.head)
    return controls.first_head_of(entry, "one_pass", named)


def _said(key: str, name: str) -> str:
    return str(st.session_state[key].get(name) or "")


def switch(key: str) -> None:
    """Update the switched-off parts."""
    asked = _said(key, "switched")
    st.session_state["one_pass_off"] = "" if asked == "nothing" else asked


def sample(key: str) -> None:
    """Update temperature (sent in tenths) and top-k."""
    if numbers := re.fullmatch(r"(\d{1,2}) (\d{1,2})", _said(key, "sampled")):
        st.session_state["one_pass_temperature"] = min(max(int(numbers[1]), 1), 20) / 10
        st.session_state["one_pass_top_k"] = min(max(int(numbers[2]), 1), ALL)


def write(key: str) -> None:
    """Start or stop the continuation of the text."""
    st.session_state["one_pass_new"] = FIRST_NEW if _said(key, "written") == "on" else 0
