"""Work that takes seconds, done while the page runs: a line with its progress and a Stop button.

The line has the same height before, during and after the work. A change of any control outside a
form, the button of a form, or the Stop button ends the work between two layers of the model: every
report of progress is a place at which Streamlit can end the run of the page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

Result = TypeVar("Result")
Report = Callable[[int], None]  # takes how many units are done
_REPORT_SECONDS = 0.15  # between two reports inside one unit


def watched(
    prefix: str,
    request: Hashable,
    make: Callable[[Report], Result],
    *,
    kept: bool,
    total: int,
    unit: str,
    done: Callable[[Result], str],
    verb: str = "Run",
) -> Result | None:
    """Return what `make` returns, with a line of progress while it runs; None once it is stopped.

    request: what is to be computed, as a value that can be compared. A request that the visitor
    has stopped stays stopped until `take_up_again` or another request starts a run. make: computes
    it; it gets a function that reports how many of `total` units are done. kept: whether the result
    is in a cache, so that nothing has to run. done: makes the line below a finished run. verb: the
    label of the button that starts a stopped run again, that of `run_form` with the same prefix.
    The line is as high before, during and after a run, so that nothing below it moves.
    Raises: what `make` raises.
    """
    stopped = f"{prefix}_stopped"

    def stop() -> None:
        st.session_state[stopped] = request

    with st.container(horizontal=True, vertical_alignment="bottom"):
        button, status = st.empty(), st.empty()
    if not kept and st.session_state.get(stopped) == request:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop_off", disabled=True)
        status.progress(0.0, text=f"Stopped. Press {verb} to start again.")
        return None
    take_up_again(prefix)
    if not kept:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop", on_click=stop)
        status.progress(0.0, text="Running the model …")

    def report(count: int) -> None:
        status.progress(min(count / total, 1.0), text=f"{count} of {total} {unit} …")

    try:
        result = make(report)
    finally:
        button.button("Stop", icon=":material/stop:", key=f"{prefix}_stop_off", disabled=True)
        status.progress(0.0, text="Nothing was run.")
    status.progress(1.0, text=done(result))
    return result


def take_up_again(prefix: str) -> None:
    """Let a stopped run of `watched` with this prefix start again."""
    st.session_state.pop(f"{prefix}_stopped", None)


class Reporter:
    """Reports finished units, and inside a long one now and then, so that it can be abandoned."""

    def __init__(self, report: Report | None) -> None:
        self._report = report or (lambda _: None)
        self._done, self._last = 0, time.monotonic()

    def unit(self, _: int = 0) -> None:
        """Another unit is done."""
        self._done += 1
        self._report(self._done)

    def layer(self, _: int) -> None:
        """The hook `before_layer` of a forward pass."""
        if time.monotonic() - self._last > _REPORT_SECONDS:
            self._last = time.monotonic()
            self._report(self._done)
