"""A form for settings that start a slow run of the model.

Without a form, dragging a slider from one end to the other would start a run at every step on the
way. In a form, nothing happens until the visitor presses the button.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui.widgets import progress


@contextmanager
def run_form(prefix: str, *keys: str, verb: str = "Run") -> Iterator[None]:
    """Show the widgets created inside the `with` in a row with a submit button.

    Until the button is pressed, the script sees the values of the last run. The exception is a row
    inside a popover that was closed: it submits its values with the next change. The browser
    updates the address immediately, so a copied link opens the page with the values in the row and
    a run with them. Widgets in the row can't have callbacks, because Streamlit doesn't allow them
    in forms. prefix: as in `progress.run_with_progress`; the button restarts a stopped run.
    keys: the keys of the linked widgets in the row. verb: the button's label.
    """

    def sent() -> None:
        progress.resume(prefix)
        # a rerun in between may have written the values of the last run to the address
        for key in keys:
            st.session_state[key] = st.session_state[key]

    with (
        st.form(f"{prefix}_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="medium"),
    ):
        yield
        st.form_submit_button(verb, icon=":material/play_arrow:", key=f"{prefix}_go", on_click=sent)
