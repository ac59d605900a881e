"""The sections of the page that run the model again: crop, and a full cache."""

from __future__ import annotations

import streamlit as st

from pages.kv_cache.inside_the_cache import charts, crop, full, pictures
from pages.kv_cache.inside_the_cache.full import AGAIN, FIRST, RING, Full
from pages.kv_cache.inside_the_cache.run import Run
from serving import models
from ui.charts.show import show
from ui.export import tables
from ui.widgets import messages
from ui.widgets.linked import linked
from ui.widgets.progress import watched
from ui.widgets.stepper import stepper


def cropped(run: Run, layer: int, head: int) -> None:
    """Controls, the buffer after the crop and after another text, and what was measured."""
    left, right = st.columns(2, gap="large")
    with left:
        n_kept = pictures.between(
            "Crop to so many tokens", "inside_the_cache_crop", 1, len(run.run_ids), run.n_prompt - 1
        )
    with right:
        other = linked(
            st.text_input,
            "Continue with",
            " cold and wet, so we",
            key="inside_the_cache_other",
            max_chars=200,
        )
    try:
        made = crop.cropped(run, n_kept, other)
    except models.LOAD_ERRORS as error:
        messages.problem(error)
        return
    crop.pictures(run, made, layer, head)
    st.text(crop.sentence(made))
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.dataframe(crop.table(made), hide_index=True, key="inside_the_cache_crop_table")
    with right:
        st.markdown(
            "`crop` only sets the length back. The memory stays, and rows marked *old* keep their "
            "numbers: nothing reads them, and the next tokens write over them."
            if made.untouched
            else "The crop changed stored numbers: this is a bug."
        )


def filled(run: Run, layer: int, head: int) -> Full | None:
    """A room that the text does not fit, the error, and three ways to go on, measured."""
    if run.n_steps < 2:
        why = run.ended or "Ask for more new tokens to fill a cache."
        st.markdown(f"This run has a single step, so its cache is never full. {why}")
        return None
    room = pictures.between(
        "Room in the cache, tokens",
        "inside_the_cache_room",
        run.n_prompt,
        len(run.run_ids) - 1,
        run.n_prompt + run.n_steps // 2 - 1,
    )
    try:
        made = watched(
            "inside_the_cache_fill",
            (run.settings, room),
            lambda report: full.full(run, room, report),
            kept=full.full.is_kept(run, room),
            total=full.total(run),
            unit="passes",
            done=lambda made: f"Passes: {full.total(run)}, in {made.seconds:.2f} s.",
        )
    except models.LOAD_ERRORS as error:
        messages.problem(error)
        return None
    if made is not None:
        _ways(run, made, layer, head)
    return made


def _ways(run: Run, made: Full, layer: int, head: int) -> None:
    st.markdown("The cache refuses the first token too many, with this error:")
    st.code(f"ValueError: {made.message}", language=None, wrap_lines=True)
    st.markdown(
        "Three ways to go on, each run on the text above:\n"
        f"- **{AGAIN.capitalize()}**: empty the cache, run the last {made.room // 2} tokens and "
        "the new one again.\n"
        f"- **{RING.capitalize()}**: a ring of {made.room} rows. Position p goes to row "
        f"p mod {made.room}, over the oldest.\n"
        f"- **{FIRST.capitalize()}**: see the first {made.n_first} rows and the last "
        f"{made.room - made.n_first}. Compare: what does it cost to lose the first token?"
    )
    st.dataframe(full.summary(run, made), hide_index=True, key="inside_the_cache_summary")
    past = min(run.n_steps, made.room - run.n_prompt + 4)
    now = stepper("Step of the ring", run.n_steps, past, key="inside_the_cache_full_step") - 1
    st.text(full.sentence(run, made, now))
    left, right = st.columns(2, gap="large")
    with left:
        full.ring(run, made, now, layer, head)
    with right:
        table = full.table(run, made)
        last = full.last_fitting(run, made)
        show(charts.drift_chart, table, last, now, key="inside_the_cache_drift")
        tables.download(
            "Every step of every way (CSV)",
            table,
            "full_cache.csv",
            key="inside_the_cache_full_csv",
        )
