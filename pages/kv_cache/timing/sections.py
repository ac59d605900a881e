"""What the page "Timing" shows: its controls, a run while it lasts, and those of the visit."""

from __future__ import annotations

import contextlib

import pandas as pd
import streamlit as st

from pages.kv_cache.timing import charts, findings, subjects
from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.measured import Run
from pages.kv_cache.timing.subjects import (
    CONTENDERS,
    CORE_CACHED,
    CORE_UNCACHED,
    GPT2_SHAPE,
    TINY,
    Question,
)
from pages.kv_cache.timing.take_away import code, files
from serving import models, warmup
from serving.limits import MAX_TIMED_REPEATS, MAX_TIMED_RUNS, OverLimit
from serving.queues import MEASUREMENTS
from ui.charts import theme
from ui.export import take_away
from ui.widgets import controls, messages
from ui.widgets.linked import linked

TOKENS = (16, 32, 64, 100, 128, 256, 512)
BOTH = [CORE_CACHED, CORE_UNCACHED]
_JOB, _RUNS, _COUNT = "timing_job", "timing_runs", "timing_count"
_SHOWN, _BESIDE, _REFUSED = "timing_shown", "timing_beside", "timing_refused"

# Measured when the page opens with nothing to show: a second's work.
OPENING: Question | None = Question(TINY, controls.NEXT_DAY, 64, 3, tuple(BOTH))

PRESETS: dict[str, dict[str, object]] = {
    "The lecture's run, GPT-2's shape": {
        "model": GPT2_SHAPE,
        "prompt": controls.NEXT_DAY,
        "tokens": 100,
        "repeats": 1,
        "ways": list(CONTENDERS[2:]),
    },
    "Where it may not pay: tiny": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 64,
        "repeats": 5,
        "ways": BOTH,
    },
    "Core beside transformers": {
        "model": TINY,
        "prompt": controls.NEXT_DAY,
        "tokens": 256,
        "repeats": 3,
        "ways": list(CONTENDERS),
    },
}


def question() -> Question:
    """The controls, and what they ask for."""
    names, ways = subjects.names(), subjects.ways()
    known = {
        title: preset
        for title, preset in PRESETS.items()
        if preset["model"] in names and set(preset["ways"]) <= set(ways)  # type: ignore[call-overload]
    }
    if known:
        st.pills(
            "Examples",
            list(known),
            key="timing_preset",
            on_change=_use_preset,
            args=(known,),
            wrap=True,
        )
    left, right = st.columns(2, gap="large")
    with left:
        prompt = controls.text("Prompt", "timing_prompt", controls.NEXT_DAY)
    with right:
        preferred = models.preferred("decoder")
        model = linked(
            st.selectbox,
            "Model",
            names,
            names.index(preferred) if preferred in names else 0,
            key="timing_model",
            help="The random ones need no weights: what a step takes depends on the shape alone. "
            "Their text means nothing.",
        )
        columns = st.columns(2)
        with columns[0]:
            n_new = linked(st.select_slider, "New tokens", TOKENS, 64, key="timing_tokens")
        with columns[1]:
            repeats = linked(
                st.select_slider,
                "Repeats",
                range(1, MAX_TIMED_REPEATS + 1),
                3,
                key="timing_repeats",
                help="The spread is that of the repeats; one has none.",
            )
        chosen = linked(
            st.multiselect, "Ways to generate, timed in turn", ways, BOTH, key="timing_ways"
        )
    return Question(model, prompt, n_new, repeats, tuple(one for one in ways if one in chosen))


def _use_preset(presets: dict[str, dict[str, object]]) -> None:
    chosen = st.session_state["timing_preset"]
    if chosen is not None:
        for name, value in presets[chosen].items():
            st.session_state[f"timing_{name}"] = value
        st.session_state["timing_preset"] = None


def measure(asked: Question) -> None:
    """The buttons, what is running, and what was measured."""
    _open()
    job: TimingJob | None = st.session_state.get(_JOB)
    timed = job is not None and job.live  # asked once: it may end at any moment
    if not timed:
        _collect()
    with st.container(horizontal=True):
        st.button(
            "Measure",
            type="primary",
            icon=":material/timer:",
            key="timing_start",
            on_click=_start,
            args=(asked,),
        )
        # it stays when nothing runs, so that nothing moves
        st.button(
            "Stop",
            icon=":material/stop:",
            key="timing_stop",
            on_click=_stop,
            disabled=not timed,
        )
    st.text(_title(asked))
    refused = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        messages.problem(refused)
    st.fragment(_progress, run_every=0.5 if timed else None)(job, timed)
    if not timed:
        _results()


def _title(asked: Question) -> str:
    ways = ", ".join(asked.contenders) or "nothing chosen"
    return f"To measure: {subjects.title(asked.model)}. In turn: {ways}."


def _open() -> None:
    """A visitor's first look: the tiny shape is measured without being asked."""
    if OPENING is None or _JOB in st.session_state:
        return
    if OPENING.model in subjects.names():
        with contextlib.suppress(OverLimit):  # many visitors wait: the page opens without
            _put(OPENING)


def _put(asked: Question) -> None:
    job = TimingJob(asked, after=warmup.start())
    MEASUREMENTS.put(job, instead_of=st.session_state.get(_JOB))
    _collect()  # what the earlier one has measured is kept
    st.session_state[_JOB] = job


def _start(asked: Question) -> None:
    try:
        _put(asked)
    except ValueError as error:  # OverLimit is one
        st.session_state[_REFUSED] = str(error)


def _stop() -> None:
    job: TimingJob | None = st.session_state.get(_JOB)
    if job is not None:
        job.stop()


def _collect() -> None:
    """Keep what a job that is over has measured; the newest is shown."""
    job: TimingJob | None = st.session_state.get(_JOB)
    if job is None or job.live or job.collected:
        return
    job.collected = True
    run = job.run_so_far()
    if run is None:
        return
    runs: dict[int, Run] = st.session_state.setdefault(_RUNS, {})
    number = st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
    runs[number] = run
    for old in sorted(runs)[:-MAX_TIMED_RUNS]:
        del runs[old]
    st.session_state[_SHOWN] = number


def _progress(job: TimingJob | None, timed: bool) -> None:
    was_live = job is not None and job.live  # read first: what is painted is then that fresh
    if job is not None:
        job.watch()
    done, text = _status(job)
    st.progress(done, text=text)
    if job is None:
        return
    if job.error:
        messages.problem(job.error)
    if timed:
        st.dataframe(_so_far(job), hide_index=True)
        st.vega_lite_chart(
            charts.live(job.recorder, job.n_prompt, job.asked.n_new, ink=theme.ink()),
            key="timing_live",
        )
    if timed and not was_live:
        st.rerun()  # the job is over: the page shows its result without a timer


def _status(job: TimingJob | None) -> tuple[float, str]:
    """How far it is, and a line about it; of the page's own words."""
    if job is None:
        return 0.0, "Nothing is running."
    if job.state == "waiting":
        ahead = MEASUREMENTS.ahead(job)
        return 0.0, f"Waiting: {ahead} ahead of you." if ahead else "Starting …"
    if job.state == "running":
        left = job.remaining_seconds
        if left is None:
            return 0.0, f"{job.doing.capitalize()} …"
        return job.progress, f"Measuring: {job.progress:.0%}, about {left:.0f} s left."
    if job.state == "stopped":
        return job.progress, "Stopped. Whole repeats are kept, or the part of a first one."
    if job.state == "failed":
        return job.progress, "Not measured."
    return 1.0, "Done. Nothing is running."


def _so_far(job: TimingJob) -> pd.DataFrame:
    rows = []
    for name, repeats in job.recorder.steps.items():
        counts = [len(repeat) for repeat in repeats]
        begun = [repeat for repeat in repeats if repeat]
        latest = begun[-1] if begun else []
        rows.append(
            {
                "contender": name,
                "steps": f"{sum(counts)} of {job.asked.n_new * job.asked.repeats}",
                "latest step": findings.seconds(latest[-1].seconds) if latest else "…",
                "this repeat": findings.seconds(sum(s.seconds for s in latest)) if latest else "…",
            }
        )
    return pd.DataFrame(rows)


def _results() -> None:
    runs: dict[int, Run] = st.session_state.get(_RUNS, {})
    if not runs:
        return
    newest = sorted(runs, reverse=True)
    labels = {number: f"#{number} {run.summary}" for number, run in runs.items()}
    left, right = st.columns(2, gap="large")
    with left:
        shown = st.selectbox(
            "Run", newest, format_func=lambda number: labels.get(number, ""), key=_SHOWN
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
    run = runs[shown]
    st.text(f"{run.summary}; {run.device}")
    cells = st.columns(4)
    for cell, (label, value) in zip(cells, findings.headline(run).items(), strict=False):
        cell.metric(label, value)
    for sentence in findings.sentences(run):
        st.markdown(sentence)
    compared = {f"#{number}": runs[number] for number in (shown, beside) if number is not None}
    _pictures(compared)
    _numbers(run)
    _everything(shown, compared)


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
        st.vega_lite_chart(
            charts.per_token(compared, logarithmic=logarithmic, ink=theme.ink()),
            key="timing_chart",
        )
    with right:
        st.markdown("**All steps so far together**: its slope is the exponent")
        st.vega_lite_chart(charts.cumulated(compared, ink=theme.ink()), key="timing_total")


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


def _everything(shown: int, compared: dict[str, Run]) -> None:
    run, runs = compared[f"#{shown}"], st.session_state[_RUNS]
    st.subheader("Runs of this visit")
    st.markdown(":small[Tokens of the prompt and new ones; medians of the repeats.]")
    st.dataframe(findings.listing(runs), hide_index=True)
    with st.expander("Every step, and the data to take away"):
        st.dataframe(run.medians(), hide_index=True, height=320)
        take_away.panel(
            files(shown, compared, bool(st.session_state["timing_log"])),
            code(run),
            prefix="timing",
            note="The file holds every step of every repeat.",
        )
