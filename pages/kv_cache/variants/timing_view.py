"""The section that times the forms: controls, progress, chart and table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from pages.kv_cache.variants import live_chart, timing
from pages.kv_cache.variants.timing import TimingSetup, VariantTimes, VariantTimingJob
from serving import measure
from serving.limits import OverLimit
from serving.queues import MEASUREMENTS
from ui.charts.show import show_live
from ui.export import tables
from ui.text.formatting import plural
from ui.widgets import job_view, messages
from ui.widgets.linked import linked

NOT_YET = (
    "The times haven't been measured yet. The diamonds show operations, counted from the shapes. "
    "To measure the times, every form first fills a cache of this length. Then the forms take "
    "turns running the next tokens, and each time is divided by MHA's in the same round, so slow "
    "moments of the machine affect all forms. MLA runs absorbed and expanded on the same cache, "
    "and their logits are compared. The models are the ones above."
)

_JOB, _ROUND, _REFUSED = "variants_job", "variants_round", "variants_refused"


def show(text: str, n_heads: int) -> None:
    """Show the section; the rest of the page doesn't wait for its measurement."""
    context = linked(
        st.select_slider,
        "Tokens in the cache",
        timing.CONTEXTS,
        1024,
        key="variants_context",
        help="The prompt's bytes are repeated to reach this length.",
    )
    setting = timing.setting(text, n_heads, context)
    job: VariantTimingJob | None = st.session_state.get(_JOB)
    round_ = st.session_state.get(_ROUND, measure.FIRST)
    if job is not None and (job.setting, job.round) != (setting, round_):
        job = None  # it used different settings; an unwatched job stops on its own
    if job is not None and job.is_live:
        job_view.follow(job, partial(_running, setting, round_), is_live=True, every=0.5)
    else:  # the button must rerun the whole section, not just a fragment
        times = timing.cached_times(setting, round_)
        button = partial(_measure_button, setting, round_, times)
        with job_view.job_container():
            _view(setting, times, job if times is None else None, button)


def _running(setting: TimingSetup, round_: int, job: VariantTimingJob, was_live: bool) -> None:
    times = timing.cached_times(setting, round_)
    stop = partial(job_view.stop_button, job, is_live=was_live, key="variants_stop")
    _view(setting, times, job if was_live or times is None else None, stop)


def _view(
    setting: TimingSetup,
    times: VariantTimes | None,
    job: VariantTimingJob | None,
    button: Callable[[], None],
) -> None:
    left, right = st.columns([1, 2], gap="large", vertical_alignment="center")
    with left:
        button()
    with right, st.container(height=90, border=False):  # fixed height, so nothing below moves
        _status(job, times)
    _results(setting, times)


def _measure_button(setting: TimingSetup, round_: int, times: VariantTimes | None) -> None:
    st.button(
        "Measure again" if times else "Measure decode steps",
        type="primary",
        icon=":material/timer:",
        key="variants_measure",
        on_click=_start,
        args=(setting, round_ if times is None else None),
    )


def _start(setting: TimingSetup, round_: int | None) -> None:
    """Queue a measurement, replacing an earlier one; None starts a new round."""
    round_ = measure.new_round() if round_ is None else round_
    job = VariantTimingJob(setting, round_)
    try:
        MEASUREMENTS.put(
            job,
            replaces=st.session_state.get(_JOB),
            **job_view.job_owner(),
        )
    except OverLimit as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state[_JOB], st.session_state[_ROUND] = job, round_


def _status(job: VariantTimingJob | None, times: VariantTimes | None) -> None:
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        messages.show_problem(refused)
    elif job is not None and job.is_live:
        ahead = job.n_ahead
        note = f"Waiting: {plural(ahead, 'visitor')} ahead of you." if ahead else job.phase
        st.progress(job.progress, text=note)
    elif job is not None and job.error:
        messages.show_problem(job.error)
    elif job is not None and job.state == "stopped":
        st.text("Stopped. Unfinished measurements aren't saved.")
    elif times is not None:
        st.text(
            f"Measured at {times.at:%H:%M:%S} UTC with {plural(times.threads, 'CPU thread')}, in "
            f"{timing.REPEATS} rounds of {timing.STEPS} steps. Circles are median times, bars the "
            "middle half of the rounds, and diamonds the counted operations."
        )
    else:
        st.text("This takes a few seconds. You can stop it.")


def _results(setting: TimingSetup, times: VariantTimes | None) -> None:
    operations = timing.operations(setting.n_heads, setting.context)
    counts = {name: count / operations["MHA"] for name, count in operations.items()}
    ratios = times.ratios if times else {}
    table = (
        times.table
        if times
        else pd.DataFrame(
            {
                "form": list(counts),
                "operations, MHA = 1": counts.values(),
                "million ops": [count / 1e6 for count in operations.values()],
            }
        )
    )
    left, right = st.columns([4, 5], gap="medium")
    with left:
        show_live(live_chart.speeds(counts, ratios), key="variants_speeds")
    with right:
        st.dataframe(
            table.style.format(precision=2),
            hide_index=True,
            key="variants_times_table",
            column_order=[one for one in table if one not in timing.IN_FILE_ONLY],
        )
        context = table.assign(context=setting.context, query_heads=setting.n_heads)
        tables.download(
            "Download the times (CSV)",
            context,
            "decode_of_variants.csv",
            key="variants_times_csv",
            disabled=times is None,
        )
    st.text(timing.summary(times) if times else NOT_YET)
