"""The measured runs of a visit to the page "Timing": one of them, or two beside each other."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.kv_cache.timing import charts, findings, stored
from pages.kv_cache.timing.measured import TimingRun
from pages.kv_cache.timing.take_away import code, files
from serving import interruptions
from serving.timing.subjects import TimingRequest
from ui.charts.show import show as show_chart
from ui.export import tables, take_away
from ui.widgets.later import later
from ui.widgets.linked import linked
from ui.widgets.parts import parts

RUNS, SHOWN = "timing_runs", "timing_shown"  # the runs of the visit by their numbers; the shown one
STORED = 0  # the number of the stored run; those of the visit begin with 1
_BESIDE = "timing_beside"
TOTALS, TERMS, STEPS = "Totals", "What a decode step takes, term by term", "Every step"


def show(question: TimingRequest) -> None:
    """The chosen run, beside another one if so chosen: charts, numbers, tables, files.

    At first the stored run. question: what the settings ask for; the results of another one are
    grey, and say so.
    """
    runs: dict[int, TimingRun] = {STORED: stored.run(), **st.session_state.get(RUNS, {})}
    number = st.session_state.get(SHOWN)
    run = runs[number if number in runs else max(runs)]
    if replace(question, repeats=run.question.repeats) == run.question:
        place = st.container(key="timing_results")
    else:
        st.info(
            "The results below belong to other settings than those above. Press Measure to get "
            "results of these.",
            icon=":material/history:",
        )
        place = st.container(key="timing_results_of_other_settings")
    with place:
        pictures, headline = later(), later()
        shown_number, beside = _choose(runs)
        compared = {_name(key): runs[key] for key in (shown_number, beside) if key is not None}
        with pictures:
            _pictures(compared)
        with headline:
            _headline(runs[shown_number])
        _numbers(runs[shown_number])
        _everything(shown_number, compared)


def _name(number: int) -> str:
    return f"#{number}" if number != STORED else "stored"


def _choose(runs: dict[int, TimingRun]) -> tuple[int, int | None]:
    newest = sorted(runs, reverse=True)
    labels = {number: f"{_name(number)}: {run.short_summary}" for number, run in runs.items()}
    left, right = st.columns(2, gap="large")
    with left:
        shown = st.selectbox(
            "TimingRun",
            newest,
            format_func=lambda number: labels.get(number, ""),
            key=SHOWN,
            help="Model, prompt and new tokens. The line above the numbers says when and where "
            "it was measured.",
        )
    with right:
        others = [number for number in newest if number != shown]
        if st.session_state.get(_BESIDE) not in others:  # it is the one on the left by now
            st.session_state[_BESIDE] = None
        beside = st.selectbox(
            "Beside it",
            others,
            None,
            format_func=lambda number: labels.get(number, ""),
            key=_BESIDE,
            placeholder="None",
            disabled=not others,
        )
    return shown, beside


def _headline(run: TimingRun) -> None:
    st.text(f"{run.summary}; {run.device}")
    if run.stood_still:
        st.warning(interruptions.notice(run.stood_still), icon=":material/pause:")
        return
    cells = st.columns(4)
    for cell, (label, value) in zip(cells, findings.headline(run).items(), strict=False):
        cell.metric(label, value)
    for sentence in findings.sentences(run):
        st.markdown(sentence)


def _pictures(compared: dict[str, TimingRun]) -> None:
    left, right = st.columns(2, gap="medium")
    logarithmic = linked(
        st.toggle,
        "Logarithmic milliseconds",
        False,
        key="timing_log",
        help="For runs whose times lie far apart.",
    )
    with left:
        st.markdown("**A step's time against its position**, and the fit")
        points, fits = charts.median_steps(compared), charts.fitted_steps(compared)
        show_chart(charts.per_token, points, fits, logarithmic, key="timing_chart")
    with right:
        st.markdown("**All steps so far together**")
        show_chart(charts.cumulated, charts.totals(compared), key="timing_total")


def _numbers(run: TimingRun) -> None:
    # of a run that was interrupted only what the clock said is shown, and nothing that follows
    shown = (STEPS,) if run.stood_still else parts("timing_part", (TOTALS, TERMS, STEPS))
    if TOTALS in shown:
        st.subheader(TOTALS)
        st.dataframe(findings.times(run), hide_index=True)
        if run.pairs:
            st.dataframe(findings.ratios(run), hide_index=True)
    if TERMS in shown:
        _terms(run)
    if STEPS in shown:
        st.subheader(STEPS)
        steps = run.medians()
        st.dataframe(steps, hide_index=True, height=tables.height(steps, 320))


def _terms(run: TimingRun) -> None:
    st.subheader(TERMS)
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


def _everything(number: int, compared: dict[str, TimingRun]) -> None:
    run, runs = compared[_name(number)], st.session_state.get(RUNS, {})
    if runs:
        st.subheader("Runs of this visit")
        st.markdown(":small[Tokens of the prompt and new ones; medians of the repeats.]")
        st.dataframe(findings.listing(runs), hide_index=True)
    take_away.panel(
        files(_name(number), compared, bool(st.session_state["timing_log"])),
        code(run),
        prefix="timing",
        note="The file holds every step of every repeat.",
    )
