"""Work that takes seconds during a page run, with a progress bar and a stop button.

The row has the same height before, during and after the work. The work ends between two layers of
the model if the visitor changes a widget outside a form, submits a form or stops it, because
Streamlit can interrupt a page run at every progress report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

Result = TypeVar("Result")
Report = Callable[[int], None]  # called with the number of finished units
_REPORT_SECONDS = 0.15  # between reports within one unit


def run_with_progress(
    prefix: str,
    request: Hashable,
    compute: Callable[[Report], Result],
    *,
    cached: bool,
    total: int,
    unit: str,
    done: Callable[[Result], str],
    verb: str = "Run",
) -> Result | None:
    """Run `compute` with a progress bar and return its result, or None if the visitor stopped it.

    request: identifies the work; it must be comparable. A stopped request stays stopped until
    `resume` is called or another request runs. compute: does the work; its argument is a
    function that reports how many of `total` units are done. cached: whether the result is cached,
    so nothing has to run. done: returns the text below a finished run. verb: the label of the
    button that restarts a stopped run, as in `run_form` with the same prefix.
    Raises: whatever `compute` raises.
    """
    stopped = f"{prefix}_stopped"

    def stop() -> None:
        st.session_state[stopped] = request

    with st.container(horizontal=True, vertical_alignment="bottom"):
        button, status = st.empty(), st.empty()
    if not cached and st.session_state.get(stopped) == request:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop_off", disabled=True)
        status.progress(0.0, text=f"Stopped. Press {verb} to start again.")
        return None
    resume(prefix)
    if not cached:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop", on_click=stop)
        status.progress(0.0, text="Running the model …")

    def report(count: int) -> None:
        status.progress(min(count / total, 1.0), text=f"{count} of {total} {unit} …")

    try:
        result = compute(report)
    finally:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop_off", disabled=True)
        status.progress(0.0, text="The run didn't finish.")
    status.progress(1.0, text=done(result))
    return result


def resume(prefix: str) -> None:
    """Allow a stopped run of `run_with_progress` with this prefix to start again."""
    st.session_state.pop(f"{prefix}_stopped", None)


class Reporter:
    """Reports finished units, and reports regularly within long units so they can be stopped."""

    def __init__(self, report: Report | None) -> None:
        self._report = report or (lambda _: None)
        self._done, self._last = 0, time.monotonic()

    def unit(self, _: int = 0) -> None:
        """Report that another unit is done."""
        self._done += 1
        self._report(self._done)

    def layer(self, _: int) -> None:
        """Report progress within a unit, as the `before_layer` hook of a forward pass."""
        if time.monotonic() - self._last > _REPORT_SECONDS:
            self._last = time.monotonic()
            self._report(self._done)
