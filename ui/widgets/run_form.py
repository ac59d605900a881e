"""Settings that start a run of the model: one row of widgets, sent together by its button.

Such a run takes seconds. A visitor who drags a slider to its other end would start one at every
notch on the way; in a form nothing happens before the button is pressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui.widgets import progress


@contextmanager
def run_form(prefix: str, *keys: str, verb: str = "Run") -> Iterator[None]:
    """A row for the widgets made inside the `with`, and behind them the button that sends them.

    Until then the script gets the values of the last run, whatever else changes on the page; but a
    row among settings that were closed sends what was moved with the next change. The address
    follows a linked widget at once, because the browser writes it: who opens it gets the values
    that stand in the row, and the run for them. No widget in the row may have a callback: Streamlit
    refuses that in a form. prefix: as in `progress.watched`, whose stopped run the button starts
    again. keys: those of the linked widgets in the row. verb: the label of the button.
    """

    def sent() -> None:
        progress.take_up_again(prefix)
        # whatever ran in between may have written the values of the last run into the address
        for key in keys:
            st.session_state[key] = st.session_state[key]

    with (
        st.form(f"{prefix}_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="medium"),
    ):
        yield
        st.form_submit_button(verb, icon=":material/play_arrow:", key=f"{prefix}_go", on_click=sent)
