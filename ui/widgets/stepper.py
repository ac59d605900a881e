"""A step slider that can play: a button, a timer, and a step that advances by itself."""

from __future__ import annotations

import streamlit as st

from ui.widgets.linked import linked


def stepper(label: str, last: int, default: int, *, key: str, seconds: float = 1.4) -> int:
    """A linked slider from 1 to `last` with a button that plays: one step every `seconds`.

    Playing ends at the last step, with the button, or when the visitor moves the slider; started
    at the last step it begins anew.
    """
    playing, next_step = f"{key}_playing", f"{key}_next"
    if key not in st.session_state:  # a new visit to the page
        st.session_state[playing] = False
        st.session_state.pop(next_step, None)
    if next_step in st.session_state:
        st.session_state[key] = st.session_state.pop(next_step)

    def toggle() -> None:
        st.session_state[playing] = not st.session_state[playing]
        if st.session_state[playing] and st.session_state[key] == last:
            st.session_state[key] = 1

    def pause() -> None:
        st.session_state[playing] = False

    with st.container(horizontal=True, vertical_alignment="bottom"):
        step: int = linked(st.slider, label, 1, last, default, key=key, on_change=pause)
        plays = st.session_state[playing]
        st.button(
            "Pause" if plays else "Play",
            icon=":material/pause:" if plays else ":material/play_arrow:",
            key=f"{key}_play",
            on_click=toggle,
        )
    if plays:
        # the fragment runs now, with the page, and then again whenever the timer fires
        st.session_state[f"{key}_armed"] = False
        st.fragment(_tick, run_every=seconds)(key, step, last)
    return step


def _tick(key: str, step: int, last: int) -> None:
    if not st.session_state[f"{key}_armed"]:
        st.session_state[f"{key}_armed"] = True
        return
    st.session_state[f"{key}_next"] = min(step + 1, last)
    if step + 1 >= last:
        st.session_state[f"{key}_playing"] = False
    st.rerun()
