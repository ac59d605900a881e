"""Keep the visitor's location in the picture in session state and URL."""

from __future__ import annotations

import streamlit as st

from pages.start.one_pass.locations import Location, exists_in, format_location, parse_location
from serving.one_pass import OnePass
from ui.widgets.visit import page_view


def sent_location(prefix: str, one_pass: OnePass, place: Location | None) -> Location | None:
    """The location when this picture was sent; moving on doesn't resend the picture."""
    opening, key = (page_view().number, one_pass.run.key), f"{prefix}_opened_at"
    if st.session_state.get(key, (None,))[0] != opening:
        st.session_state[key] = (opening, place)
    opened: Location | None = st.session_state[key][1]
    return opened


def store_location(prefix: str, picture: str, one_pass: OnePass | None) -> None:
    """Store the current location in a picture. picture: the key of its component."""
    place = parse_location(str(st.session_state[picture].get("place") or ""))
    if place is not None and one_pass is not None and exists_in(place, one_pass):
        st.session_state[f"{prefix}_layer"] = place["layer"]
        st.session_state[f"{prefix}_head"] = place["head"]
        st.query_params[f"{prefix}_at"] = format_location(place)
