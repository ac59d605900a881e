"""Keep the visitor's place in the picture in session state and URL."""

from __future__ import annotations

import streamlit as st

from pages.start.one_pass.places import Place, is_in, place_of, written
from serving.one_pass import OnePass
from ui.widgets.visit import page_view


def opened_at(prefix: str, passed: OnePass, place: Place | None) -> Place | None:
    """The place when this picture was sent; moving on doesn't send the picture again."""
    opening, key = (page_view().number, passed.run.key), f"{prefix}_opened_at"
    if st.session_state.get(key, (None,))[0] != opening:
        st.session_state[key] = (opening, place)
    opened: Place | None = st.session_state[key][1]
    return opened


def walk(prefix: str, picture: str, passed: OnePass | None) -> None:
    """Store the current place in a picture. picture: the key of its component."""
    place = place_of(str(st.session_state[picture].get("place") or ""))
    if place is not None and passed is not None and is_in(place, passed):
        st.session_state[f"{prefix}_layer"] = place["layer"]
        st.session_state[f"{prefix}_head"] = place["head"]
        st.query_params[f"{prefix}_at"] = written(place)
