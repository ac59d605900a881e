"""Callbacks that copy actions in the picture to the page's settings and URL."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.start.one_pass.navigation import store_location
from pages.start.one_pass.writing import ALL, DEFAULT_NEW
from pretrained import CatalogEntry
from serving.flow import HeadEdge
from serving.heads import HeadId
from serving.one_pass import OnePass
from ui.widgets import controls
from ui.widgets.head_choice import HeadChoice


def make_callbacks(key: str, one_pass: OnePass | None = None) -> dict[str, Callable[[], None]]:
    """The callbacks of the picture `key`. one_pass: the pass shown, None while loading."""
    return {
        "on_place_change": partial(store_location, "one_pass", key, one_pass),
        "on_switched_change": partial(switch, key),
        "on_sampled_change": partial(sample, key),
        "on_written_change": partial(write, key),
    }


def head(entry: CatalogEntry, first: HeadEdge | None) -> HeadChoice:
    """The layer and head to open: the visitor's choice, or the default for this text."""
    middle = HeadId(entry.spec.n_layers // 2, 0)
    by_name = middle if first is None else HeadId(first.layer, first.head)
    return controls.default_head(entry, "one_pass", by_name)


def _state_value(key: str, name: str) -> str:
    return str(st.session_state[key].get(name) or "")


def switch(key: str) -> None:
    """Update the switched-off parts."""
    asked = _state_value(key, "switched")
    st.session_state["one_pass_off"] = "" if asked == "nothing" else asked


def sample(key: str) -> None:
    """Update temperature (sent in tenths) and top-k."""
    if numbers := re.fullmatch(r"(\d{1,2}) (\d{1,2})", _state_value(key, "sampled")):
        st.session_state["one_pass_temperature"] = min(max(int(numbers[1]), 1), 20) / 10
        st.session_state["one_pass_top_k"] = min(max(int(numbers[2]), 1), ALL)


def write(key: str) -> None:
    """Start or stop the continuation of the text."""
    st.session_state["one_pass_new"] = DEFAULT_NEW if _state_value(key, "written") == "on" else 0
