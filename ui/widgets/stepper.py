"""A step slider with buttons for the previous step, the next step and playing all steps."""

from __future__ import annotations

import streamlit as st

from ui.widgets.linked import linked


def stepper(
    label: str, last: int, default: int, *, key: str, seconds: float = 1.4, keys: bool = True
) -> int:
    """A linked slider from 1 to `last` with Previous, Next and Play buttons.

    seconds: duration of each step while playing. Playing ends at the last step, when the visitor
    pauses it, or when they go to another step. At the last step, Play starts over. keys: whether
    the arrow keys work, too; only one stepper per page can have them.
    """
    playing, next_step = f"{key}_playing", f"{key}_to"
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

    def go(to: int) -> None:
        pause()
        st.session_state[key] = to

    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}_stepper"):
        step: int = linked(st.slider, label, 1, last, default, key=key, on_change=pause)
        for name, to, arrow in (("Previous", step - 1, "Left"), ("Next", step + 1, "Right")):
            st.button(
                name,
                icon=f":material/skip_{name.lower()}:",
                key=f"{key}_{name.lower()}",
                on_click=go,
                args=(to,),
                disabled=not 1 <= to <= last,
                shortcut=arrow if keys else None,
            )
        plays = st.session_state[playing]
        st.button(
            "Pause" if plays else "Play",
            icon=":material/pause:" if plays else ":material/play_arrow:",
            key=f"{key}_play",
            on_click=toggle,
        )
    if plays:
        # the fragment runs once with the page, and then on every tick of the timer
        st.session_state[f"{key}_armed"] = False
        st.fragment(_tick, run_every=seconds)(key, step, last)
    return step


def _tick(key: str, step: int, last: int) -> None:
    if not st.session_state[f"{key}_armed"]:
        st.session_state[f"{key}_armed"] = True
        return
    st.session_state[f"{key}_to"] = min(step + 1, last)
    if step + 1 >= last:
        st.session_state[f"{key}_playing"] = False
    st.rerun()
