"""The live view of a generation job: race, times, chart and stop button."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import streamlit as st

from pages.generate.generate import live_chart
from pages.generate.generate.job import GenerationJob, GenerationSteps, submit
from serving import interruptions, reduced_precision
from serving.jobs import JobQueue
from serving.limits import OverLimit
from serving.race import RaceRequest
from ui.canvas.race import Lane, race
from ui.charts import style
from ui.charts.show import show_live
from ui.export import tables
from ui.text.formatting import format_number, plural
from ui.widgets import job_view, messages

_JOB = "generate_job"
_NOTES: dict[reduced_precision.Weights, str] = {
    "float32": "",
    "int8": " With int8 weights, a pass over a few tokens rounds its products and a pass over many "
    "doesn't. The two runs may therefore write different texts, and both are correct.",
    "bfloat16": " The decode steps with the cache were recorded once as a CUDA graph, and each one "
    "is replayed with a single call. In bfloat16, a pass over one token rounds at different points "
    "than a pass over many. The two runs may therefore write different texts, and both are "
    "correct.",
}

_OTHER_SETTINGS_NOTE = (
    " The settings have changed since this run. Press *Generate text* to run the new ones."
)


def start(queue: JobQueue, request: RaceRequest) -> None:
    """Queue a request for this visitor, replacing any job that is still running."""
    try:
        st.session_state[_JOB] = submit(
            queue,
            request,
            replaces=st.session_state.get(_JOB),
            **job_view.job_owner(),
        )
    except OverLimit as error:
        messages.show_problem(error)


def show(request: RaceRequest) -> None:
    """Show the visitor's job, redrawn four times a second, or empty lanes.

    request: the current settings. If the job used different settings, the status line says so.
    """
    job: GenerationJob | None = st.session_state.get(_JOB)
    if job is None:
        race(
            (Lane(style.CACHED, "", (), (), ()), Lane(style.UNCACHED, "", (), (), ())),
            run="",
            prompt=request.prompt,
            n_steps=request.max_new_tokens,
            over=False,
            verdict="",
            key="generate_race_empty",
        )
    else:
        view = partial(_view, is_as_set=job.request == request)
        job_view.follow(job, view, is_live=job.is_live, every=0.25)


def _view(job: GenerationJob, was_live: bool, *, is_as_set: bool) -> None:
    _race(job, over=not was_live)  # drawn first, so it replaces the empty lanes
    with st.container(horizontal=True, vertical_alignment="center"):
        job_view.stop_button(job, is_live=was_live, key="generate_stop")
        _status(job, "" if is_as_set else _OTHER_SETTINGS_NOTE)
    if job.state != "failed":
        st.text(job.request.summary)
    if job.cached.steps:
        _numbers(job)
        show_live(_chart(job), key="generate_chart")
    if not was_live and job.cached.steps:
        _data(job)


def _status(job: GenerationJob, remark: str) -> None:
    state, ahead, done = job.state, job.n_ahead, len(job.cached.steps)
    asked = plural(job.request.max_new_tokens, "token")
    if state == "failed":
        messages.show_problem(job.error)
        return
    if state == "waiting":
        others = f"Waiting: {plural(ahead, 'visitor')} ahead of you."
        message, icon = others if ahead else "Starting …", "hourglass_top"
    elif state == "running":
        warm = f"{done} of {asked}" if done else "warming up"
        message, icon = f"Running: {warm if job.device else 'loading the model'} …", "bolt"
    elif state == "stopped":
        message, icon = f"Stopped after {done} of {asked}.", "stop"
    else:
        message, icon = f"Done: {plural(done, 'token')}. {job.notice}", "check"
    box = st.success if state == "done" else st.info
    box(f"{message}{remark}", icon=f":material/{icon}:")


def _race(job: GenerationJob, *, over: bool) -> None:
    # read the cached run first: each of its steps already has its uncached partner
    runs = {style.CACHED: job.cached, style.UNCACHED: job.uncached}
    counts = [len(run.steps) for run in runs.values()]
    lanes = []
    for (title, run), count in zip(runs.items(), counts, strict=True):
        steps = run.steps[:count]
        seconds, tokens = [step.seconds for step in steps], [step.n_new for step in steps]
        lanes.append(Lane(title, job.text(run), run.text_lengths[:count], seconds, tokens))
    first, second = lanes
    verdict = ""
    if job.stalled_seconds:
        verdict = interruptions.notice(job.stalled_seconds)
    elif job.speed_up is not None:
        verdict = (
            f"{first.name.capitalize()}: {sum(first.seconds):.2f} s. "
            f"{second.name.capitalize()}: {sum(second.seconds):.2f} s, "
            f"{job.speed_up:.2f} times as long."
        )
    race(
        (first, second),
        run=str(id(job)),
        prompt=job.request.prompt,
        n_steps=len(job.cached.steps) if job.state == "done" else job.request.max_new_tokens,
        over=over,
        verdict=verdict,
        key="generate_race",
    )


def _numbers(job: GenerationJob) -> None:
    if job.stalled_seconds:
        st.warning(interruptions.notice(job.stalled_seconds), icon=":material/pause:")
    cells = st.columns(4)
    speed_up = "–" if job.stalled_seconds else _format_or_dots(job.speed_up, "{:.2f} ×")
    cells[0].metric("Total speed-up", speed_up)
    difference = job.largest_difference
    not_a_number = difference is not None and math.isnan(difference)
    cells[1].metric(
        "Largest logit difference",
        "not a number" if not_a_number else _format_or_dots(difference, "{:.1e}"),
    )
    cells[2].metric("Same tokens", {True: "yes", False: "no", None: "…"}[job.same_tokens])
    size = job.cache_size
    cells[3].metric(
        "Cache size",
        "…" if size is None else f"{size.measured / 1e6:.2f} MB",
        help=None
        if size is None
        else f"{size.measured:,} bytes of keys and values, measured. The formula (layers × "
        f"key/value heads × head size × tokens × 2 × bytes per value) gives {size.formula:,}.",
    )
    remark = _NOTES[job.request.weights]
    st.markdown(
        ":small[The total speed-up is the time without the cache ÷ the time with it, prompt "
        f"included, for a single run of each on {job.device}. *Timing* takes the median of several "
        f"repeats on the machine named there, so its ratio can differ.{remark}]"
    )
    st.table(pd.DataFrame([_row(style.CACHED, job.cached), _row(style.UNCACHED, job.uncached)]))


def _format_or_dots(value: float | None, pattern: str) -> str:
    return "…" if value is None else pattern.format(value)


def _row(title: str, run: GenerationSteps) -> dict[str, str]:
    def milliseconds(seconds: float | None) -> str:
        return "…" if seconds is None else f"{seconds * 1e3:.1f} ms"

    decode = run.decode_seconds
    return {
        "run": title,
        "total": f"{run.seconds:.2f} s",
        "prefill": milliseconds(run.prefill_seconds),
        "median decode step": milliseconds(run.median_decode_seconds),
        "decode": f"{len(decode) / sum(decode):.1f} tokens/s" if decode else "…",
        "FLOPs": format_number(sum(step.flops for step in run.steps), ".2e"),
    }


def _chart(job: GenerationJob) -> dict[str, object]:
    runs = {style.CACHED: job.cached, style.UNCACHED: job.uncached}
    return live_chart.time_per_token(
        {
            title: run.prefill_seconds * 1e3
            for title, run in runs.items()
            if run.prefill_seconds is not None
        },
        {title: [seconds * 1e3 for seconds in run.decode_seconds] for title, run in runs.items()},
        n_steps=job.request.max_new_tokens - 1,
    )


def _data(job: GenerationJob) -> None:
    """Show the chart's data as a table with a row for every step, and a download."""
    rows = [
        {
            "run": title,
            "step": number,
            "kind": step.kind,
            "token id": step.token_id,
            "token": piece,
            "log-probability": step.logprob,
            "milliseconds": step.seconds * 1e3,
            "tokens processed": step.n_new,
            "keys": step.n_keys,
            "cache length": step.cache_length,
            "FLOPs": step.flops,
            "stalled, s": step.stalled_seconds,
        }
        for title, run in ((style.CACHED, job.cached), (style.UNCACHED, job.uncached))
        for number, (step, piece) in enumerate(
            zip(run.steps, job.pieces(run), strict=False), start=1
        )
    ]
    table = pd.DataFrame(rows)
    with st.expander("Every step, with a download"):
        st.dataframe(table, hide_index=True, height=tables.height(table, 320))
        settings = table.assign(settings=job.request.summary, device=job.device)
        tables.download(
            "Download every step (CSV)", settings, "generation_steps.csv", key="generate_csv"
        )
