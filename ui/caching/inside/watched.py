"""A run on the page's own run: a line with its progress and a Stop button, always as high."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

Result = TypeVar("Result")


def watched(
    prefix: str,
    wanted: Hashable,
    make: Callable[[Callable[[int], None]], Result],
    *,
    kept: bool,
    total: int,
    unit: str,
    done: Callable[[Result], str],
) -> Result | None:
    """What `make` returns, made here with progress if it is not kept; None once stopped.

    wanted: stands for what is made; a stopped one stays stopped until the visitor asks for it or
    for another. make: gets a function that reports how many of `total` units are done. done: the
    line below a finished run. The line is as high before, during and after a run.
    Raises: what `make` raises.
    """
    stopped = f"{prefix}_stopped"

    def stop() -> None:
        st.session_state[stopped] = wanted

    def go_on() -> None:
        st.session_state.pop(stopped, None)

    with st.container(horizontal=True, vertical_alignment="center"):
        button, status = st.empty(), st.empty()
    if not kept and st.session_state.get(stopped) == wanted:
        button.button("Run", icon=":material/play_arrow:", key=f"{prefix}_start", on_click=go_on)
        status.progress(0.0, text="Stopped. Press Run, or change a setting.")
        return None
    go_on()
    if not kept:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop", on_click=stop)
        status.progress(0.0, text="Running the model …")

    def report(count: int) -> None:
        status.progress(min(count / total, 1.0), text=f"{count} of {total} {unit} …")

    try:
        made = make(report)
    finally:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop_off", disabled=True)
        status.progress(0.0, text="Nothing was run.")
    status.progress(1.0, text=done(made))
    return made
