"""The results on the page "Timing": one run, or two compared."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.kv_cache.timing import charts, downloads, findings, stored
from pages.kv_cache.timing.timing_run import TimingRun
from serving import interruptions
from serving.timing.timed_contenders import TimingRequest
from ui.charts.show import show as show_chart
from ui.export import tables
from ui.widgets.linked import linked
from ui.widgets.placeholder import placeholder
from ui.widgets.section_picker import section_picker

RUNS, SHOWN = "timing_runs", "timing_shown"  # session keys: all runs by number; the selected number
STORED = 0  # number of the stored run; the visitor's runs start at 1
_COMPARE_WITH = "timing_beside"
TOTALS, TERMS, STEPS = "Totals", "A decode step, term by term", "Every step"


def show(question: TimingRequest) -> None:
    """Show the selected run (at first the stored one) with charts and tables.

    question: the current settings. Results with different settings are grayed out and labeled as
    such.
    """
    runs: dict[int, TimingRun] = {STORED: stored.run(), **st.session_state.get(RUNS, {})}
    number = st.session_state.get(SHOWN)
    run = runs[number if number in runs else max(runs)]
    if replace(question, repeats=run.question.repeats) == run.question:
        place = st.container(key="timing_results")
    else:
        st.info(
            "The results below were measured with other settings. Press *Measure times* to measure "
            "the current ones.",
            icon=":material/history:",
        )
        place = st.container(key="timing_results_of_other_settings")
    with place:
        pictures, headline = placeholder(), placeholder()
        shown_number, beside = _choose(runs)
        compared = {_name(key): runs[key] for key in (shown_number, beside) if key is not None}
        with pictures:
            _pictures(compared)
        with headline:
            _headline(runs[shown_number])
        _numbers(runs[shown_number])
        _details(shown_number, compared)


def _name(number: int) -> str:
    return f"#{number}" if number != STORED else "stored"


def _choose(runs: dict[int, TimingRun]) -> tuple[int, int | None]:
    newest = sorted(runs, reverse=True)
    labels = {number: f"{_name(number)}: {run.short_summary}" for number, run in runs.items()}
    left, right = st.columns(2, gap="large")
    with left:
        shown = st.selectbox(
            "Run",
            newest,
            format_func=lambda number: labels.get(number, ""),
            key=SHOWN,
            help="Each run is listed with its model, prompt tokens and new tokens. The line above "
            "the numbers says when and where it was measured.",
        )
    with right:
        others = [number for number in newest if number != shown]
        if st.session_state.get(_COMPARE_WITH) not in others:  # now selected on the left
            st.session_state[_COMPARE_WITH] = None
        beside = st.selectbox(
            "Compare with",
            others,
            None,
            format_func=lambda number: labels.get(number, ""),
            key=_COMPARE_WITH,
            placeholder="None",
            disabled=not others,
        )
    return shown, beside


def _headline(run: TimingRun) -> None:
    st.text(f"{run.summary}; {run.device}")
    if run.stalled_seconds:
        st.warning(interruptions.notice(run.stalled_seconds), icon=":material/pause:")
        return
    cells = st.columns(4)
    for cell, (label, value) in zip(cells, findings.headline(run).items(), strict=False):
        cell.metric(label, value)
    if run.pairs:
        source = (
            f"It's the median of {run.repeats} repeats" if run.repeats > 1 else "It's one repeat"
        )
        st.markdown(
            f":small[Total time without the cache ÷ with it. {source}; *Generate* times one new "
            "run here.]"
        )
    for sentence in findings.sentences(run):
        st.markdown(sentence)


def _pictures(runs: dict[str, TimingRun]) -> None:
    left, right = st.columns(2, gap="medium")
    logarithmic = linked(
        st.toggle,
        "Logarithmic milliseconds",
        False,
        key="timing_log",
        help="Useful when the times differ a lot.",
    )
    with left:
        st.markdown("**Time per step**, with fitted lines")
        points, fits = charts.median_steps(runs), charts.fitted_steps(runs)
        show_chart(charts.per_token, points, fits, logarithmic, key="timing_chart")
    with right:
        st.markdown("**Total time**")
        show_chart(charts.cumulative, charts.totals(runs), key="timing_total")


def _numbers(run: TimingRun) -> None:
    # for an interrupted run, show only the raw times and no statistics
    shown = (
        (STEPS,) if run.stalled_seconds else section_picker("timing_part", (TOTALS, TERMS, STEPS))
    )
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
            "clearly nonzero": st.column_config.TextColumn(width=80),
            "implied rate": st.column_config.TextColumn(width=260),
        },
    )


def _details(number: int, runs_by_name: dict[str, TimingRun]) -> None:
    run, runs = runs_by_name[_name(number)], st.session_state.get(RUNS, {})
    if runs:
        st.subheader("Runs of this visit")
        st.markdown(
            ":small[*Prompt* and *new* are numbers of tokens. Times are medians over the repeats.]"
        )
        st.dataframe(findings.run_list(runs), hide_index=True)
    downloads.show(_name(number), run)
