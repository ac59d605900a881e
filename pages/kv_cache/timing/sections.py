"""Controls, progress and live chart of a running measurement."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kv_cache.timing import findings, live_chart, results
from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.timing_run import MIN_STEPS, TimingRun
from serving import warmup
from serving.limits import MAX_TIMED_RUNS
from serving.queues import MEASUREMENTS
from serving.timing.timed_contenders import TimingRequest
from ui.charts.show import show_live
from ui.text.formatting import plural
from ui.widgets import job_view, messages

_JOB, _COUNT, _REFUSED = "timing_job", "timing_count", "timing_refused"


def measure(question: TimingRequest, place: DeltaGenerator) -> None:
    """Show buttons, progress and results; the start button goes into `place`."""
    job: TimingJob | None = st.session_state.get(_JOB)
    timed = job is not None and job.is_live  # read once, because the job may end at any moment
    if not timed:
        _collect()
    with place:
        st.button(
            "Measure times",
            type="primary",
            icon=":material/timer:",
            key="timing_start",
            on_click=_start,
            args=(question,),
        )
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        messages.show_problem(refused)
    if job is not None:
        stop, progress = st.columns([1, 6], vertical_alignment="center")
        with stop:
            job_view.stop_button(job, is_live=timed, key="timing_stop")
        with progress:
            job_view.follow(job, partial(_progress, timed), is_live=timed, every=0.5)
    if not timed:
        results.show(question)


def _enqueue(question: TimingRequest) -> None:
    job = TimingJob(question, after=warmup.start())
    MEASUREMENTS.put(
        job,
        replaces=st.session_state.get(_JOB),
        **job_view.job_owner(),
    )
    _collect()  # keep the results of the earlier job
    st.session_state[_JOB] = job


def _start(question: TimingRequest) -> None:
    try:
        _enqueue(question)
    except ValueError as error:  # OverLimit is one
        st.session_state[_REFUSED] = str(error)


def _collect() -> None:
    """Save the results of a finished job and select them."""
    job: TimingJob | None = st.session_state.get(_JOB)
    if job is None or job.is_live or job.is_collected:
        return
    job.is_collected = True
    run = job.partial_run()
    if run is None:
        return
    runs: dict[int, TimingRun] = st.session_state.setdefault(results.RUNS, {})
    number = st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
    runs[number] = run
    for old in sorted(runs)[:-MAX_TIMED_RUNS]:
        del runs[old]
    st.session_state[results.SHOWN] = number


def _progress(timed: bool, job: TimingJob, _: bool) -> None:
    done, text = status(job)
    st.progress(done, text=text)
    if job.error:
        messages.show_problem(job.error)
    if timed:
        st.dataframe(_partial_table(job), hide_index=True)
        chart = live_chart.live_steps(job.recorder, job.n_prompt, job.question.n_new)
        show_live(chart, key="timing_live")


def status(job: TimingJob) -> tuple[float, str]:
    """The progress from 0 to 1 and a status line, without visitor input."""
    if job.state == "waiting":
        ahead = job.n_ahead
        return 0.0, f"Waiting: {plural(ahead, 'visitor')} ahead of you." if ahead else "Starting …"
    if job.state == "running":
        left = job.remaining_seconds
        if left is None:
            return 0.0, f"{job.phase.capitalize()} …"
        return job.progress, f"Measuring: {job.progress:.0%}, about {left:.0f} s left."
    if job.state == "stopped" and job.partial_run() is None:
        few = f"Stopped. Results need at least {MIN_STEPS} steps per method, so none were saved."
        return job.progress, few
    if job.state == "stopped":
        return (
            job.progress,
            "Stopped. The results cover the finished repeats, or what ran of the first one.",
        )
    if job.state == "failed":
        return job.progress, "The measurement failed."
    return 1.0, "Done."


def _partial_table(job: TimingJob) -> pd.DataFrame:
    rows = []
    for name, repeats in job.recorder.steps.items():
        counts = [len(repeat) for repeat in repeats]
        begun = [repeat for repeat in repeats if repeat]
        latest = begun[-1] if begun else []
        rows.append(
            {
                "contender": name,
                "steps": f"{sum(counts)} of {job.question.n_new * job.question.repeats}",
                "latest step": findings.seconds(latest[-1].seconds) if latest else "…",
                "this repeat": findings.seconds(sum(s.seconds for s in latest)) if latest else "…",
            }
        )
    return pd.DataFrame(rows)
