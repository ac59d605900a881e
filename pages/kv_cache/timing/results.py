"""The measured runs of a visit to the page "Timing": one of them, or two beside each other."""

from __future__ import annotations

import streamlit as st

from pages.kv_cache.timing import charts, findings
from pages.kv_cache.timing.measured import Run
from pages.kv_cache.timing.take_away import code, files
from ui.charts.show import show as show_chart
from ui.export import take_away
from ui.widgets.linked import linked

RUNS, SHOWN = (
    "timing_runs",
    "timing_shown",
)  # the runs of the visit by their numbers; which is shown
_BESIDE = "timing_beside"


def show() -> None:
    """The chosen run, beside another one if so chosen: numbers, charts, tables, files."""
    runs: dict[int, Run] = st.session_state.get(RUNS, {})
    if not runs:
        return
    newest = sorted(runs, reverse=True)
    labels = {number: f"#{number} {run.summary}" for number, run in runs.items()}
    left, right = st.columns(2, gap="large")
    with left:
        shown_number = st.selectbox(
            "Run", newest, format_func=lambda number: labels.get(number, ""), key=SHOWN
        )
    with right:
        other_numbers = [number for number in newest if number != shown_number]
        if st.session_state.get(_BESIDE) not in other_numbers:  # it is the one on the left by now
            st.session_state[_BESIDE] = None
        beside = st.selectbox(
            "Beside it",
            other_numbers,
            None,
            format_func=lambda number: labels.get(number, ""),
            key=_BESIDE,
            placeholder="None",
            disabled=not other_numbers,
        )
    run = runs[shown_number]
    st.text(f"{run.summary}; {run.device}")
    cells = st.columns(4)
    for cell, (label, value) in zip(cells, findings.headline(run).items(), strict=False):
        cell.metric(label, value)
    for sentence in findings.sentences(run):
        st.markdown(sentence)
    compared = {
        f"#{number}": runs[number] for number in (shown_number, beside) if number is not None
    }
    _pictures(compared)
    _numbers(run)
    _everything(shown_number, compared)


def _pictures(compared: dict[str, Run]) -> None:
    logarithmic = linked(
        st.toggle,
        "Logarithmic milliseconds",
        False,
        key="timing_log",
        help="For runs whose times lie far apart.",
    )
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**A step's time against its position**: medians, and the fitted terms")
        points, fits = charts.median_steps(compared), charts.fitted_steps(compared)
        show_chart(charts.per_token, points, fits, logarithmic, key="timing_chart")
    with right:
        st.markdown("**All steps so far together**: its slope is the exponent")
        show_chart(charts.cumulated, charts.totals(compared), key="timing_total")


def _numbers(run: Run) -> None:
    st.subheader("Totals")
    st.dataframe(findings.times(run), hide_index=True)
    if run.pairs:
        st.dataframe(findings.ratios(run), hide_index=True)
    st.subheader("What a decode step takes, term by term")
    st.dataframe(
        findings.terms(run),
        hide_index=True,
        height="content",
        column_config={
            "term": st.column_config.TextColumn(width=70),
            "clear of 0": st.column_config.TextColumn(width=80),
            "that makes": st.column_config.TextColumn(width=260),
        },
    )


def _everything(number: int, compared: dict[str, Run]) -> None:
    run, runs = compared[f"#{number}"], st.session_state[RUNS]
    st.subheader("Runs of this visit")
    st.markdown(":small[Tokens of the prompt and new ones; medians of the repeats.]")
    st.dataframe(findings.listing(runs), hide_index=True)
    with st.expander("Every step, and the data to take away"):
        st.dataframe(run.medians(), hide_index=True, height=320)
        take_away.panel(
            files(number, compared, bool(st.session_state["timing_log"])),
            code(run),
            prefix="timing",
            note="The file holds every step of every repeat.",
        )
