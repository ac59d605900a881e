"""The live view of a generation job: two texts, the times, the chart, a stop button."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ui import charts
from ui.generation import Job, JobQueue, Request, Run

_JOB = "generate_job"


def start(queue: JobQueue, request: Request) -> None:
    """Queue a request for this visitor, in place of the one that may still be running."""
    earlier: Job | None = st.session_state.get(_JOB)
    if earlier is not None:
        earlier.stop()
    st.session_state[_JOB] = queue.submit(request)


def show(queue: JobQueue) -> None:
    """The visitor's job, if there is one; repainted four times a second while it lives."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None:
        st.fragment(_view, run_every=0.25 if job.live else None)(queue, job)


def _view(queue: JobQueue, job: Job) -> None:
    was_live = job.live  # read first: what is painted below is then at least that fresh
    job.watch()
    _status(queue, job)
    if was_live:
        st.button("Stop", icon=":material/stop:", key="generate_stop", on_click=job.stop)
    _texts(job)
    _numbers(job)
    st.vega_lite_chart(_chart(job), key="generate_chart")
    if not was_live:
        _data(job)
    elif not job.live:
        st.rerun()  # it ended while this was painted: once more, without the timer


def _status(queue: JobQueue, job: Job) -> None:
    ahead = queue.ahead(job)
    done, asked = len(job.cached.steps), job.request.max_new_tokens
    if job.state == "waiting":
        others = f"{ahead} visitor{'s' if ahead != 1 else ''} ahead of you."
        st.info(f"Waiting: {others}" if ahead else "Starting …", icon=":material/hourglass_top:")
    elif job.state == "running":
        phase = f"{done} of {_tokens(asked)}" if job.device else "loading the model"
        st.info(f"Running: {phase} …", icon=":material/bolt:")
    elif job.state == "failed":
        st.warning(job.error, icon=":material/edit:")
    elif job.state == "stopped":
        st.info(f"Stopped after {done} of {_tokens(asked)}.", icon=":material/stop:")
    else:
        st.success(f"Done: {_tokens(done)}. {job.notice}", icon=":material/check:")


def _tokens(count: int) -> str:
    return f"{count} token{'' if count == 1 else 's'}"


def _texts(job: Job) -> None:
    columns = st.columns(2, gap="medium")
    for column, run, title in zip(
        columns, (job.cached, job.uncached), (charts.CACHED, charts.UNCACHED), strict=True
    ):
        with column:
            st.markdown(f"**{title.capitalize()}**")
            # text that a model or a visitor wrote is shown as text, never as Markdown
            st.code(job.request.prompt + job.text(run), language=None, wrap_lines=True, height=160)


def _numbers(job: Job) -> None:
    cells = st.columns(4)
    speed_up, difference = job.speed_up, job.largest_difference
    cells[0].metric("Speed-up in total", "…" if speed_up is None else f"{speed_up:.2f} ×")
    cells[1].metric("Largest logit difference", "…" if difference is None else f"{difference:.1e}")
    same = job.cached.token_ids == job.uncached.token_ids
    cells[2].metric("Same tokens", "yes" if same else "no")
    cells[3].metric("Device", job.device or "…")
    st.table(pd.DataFrame([_row(charts.CACHED, job.cached), _row(charts.UNCACHED, job.uncached)]))


def _row(title: str, run: Run) -> dict[str, str]:
    def milliseconds(seconds: float | None) -> str:
        return "…" if seconds is None else f"{seconds * 1e3:.1f} ms"

    decode = run.decode_seconds
    return {
        "run": title,
        "total": f"{run.seconds:.2f} s",
        "prefill": milliseconds(run.prefill_seconds),
        "decode step, median": milliseconds(run.median_decode_seconds),
        "decode": f"{len(decode) / sum(decode):.1f} tokens/s" if decode else "…",
        "FLOPs": f"{sum(step.flops for step in run.steps):.2e}",
    }


def _chart(job: Job) -> dict[str, object]:
    runs = {charts.CACHED: job.cached, charts.UNCACHED: job.uncached}
    return charts.time_per_token(
        {
            title: run.prefill_seconds * 1e3
            for title, run in runs.items()
            if run.prefill_seconds is not None
        },
        {title: [seconds * 1e3 for seconds in run.decode_seconds] for title, run in runs.items()},
        n_steps=job.request.max_new_tokens - 1,
    )


def _data(job: Job) -> None:
    """Every step as a table and a download: the twin of the chart."""
    rows = [
        {
            "run": title,
            "step": number,
            "kind": step.kind,
            "token id": step.token_id,
            "token": piece,
            "log-probability": step.logprob,
            "milliseconds": step.seconds * 1e3,
            "tokens run": step.n_new,
            "keys": step.n_keys,
            "cache length": step.cache_length,
            "FLOPs": step.flops,
        }
        for title, run in ((charts.CACHED, job.cached), (charts.UNCACHED, job.uncached))
        for number, (step, piece) in enumerate(zip(run.steps, job.pieces(run), strict=True))
    ]
    if not rows:
        return
    table = pd.DataFrame(rows)
    with st.expander("Every step, and the data to take away"):
        st.dataframe(table, hide_index=True, height=320)
        st.download_button(
            "Download every step (CSV)",
            table.to_csv(index=False).encode(),
            file_name="generation_steps.csv",
            mime="text/csv",
            key="generate_csv",
            on_click="ignore",
        )
