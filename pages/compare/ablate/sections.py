"""The ranking of all heads on the page "Ablate", during and after the job."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from pages.compare.ablate import live_grid, pickers, ranking, runs
from pages.compare.ablate.ranking import Ranking, RankJob
from pages.compare.ablate.runs import AblationTarget
from serving import models
from serving.heads import HeadId
from serving.limits import OverLimit
from serving.queues import GENERATIONS
from ui.charts.show import show_live
from ui.export import tables
from ui.text.formatting import plural
from ui.widgets import job_view, messages
from ui.widgets.visit import on_leave

SHORT_SECONDS = 0.25  # enough for a small model, so the page skips the progress bar
_JOB, _GRID, _TABLE = "ablate_job", "ablate_grid", "ablate_ranked"


def rank(question: AblationTarget, heads: Sequence[str], kind: str) -> None:
    """Show the effects of all heads, a running job, or a button that starts one.

    A short text is ranked automatically unless the visitor stopped that ranking. If it would take a
    long time, it only starts while the queue is empty. It ends when the visitor opens another page.
    """
    ranked = ranking.cached_ranking(question, kind)
    job: RankJob | None = st.session_state.get(_JOB)
    if job is not None and (job.question.key, job.kind) != (question.key, kind):
        job.stop()  # the settings have changed, so free the queue for the new ranking
        del st.session_state[_JOB]
        job = None
    quick = ranking.is_quick(question)
    at_once = len(question.ids) <= ranking.MAX_AT_ONCE_TOKENS and (quick or GENERATIONS.is_free)
    if ranked is None and job is None and at_once:
        with contextlib.suppress(OverLimit):  # the queue is full; the button remains
            job = _enqueue(question, kind)
            on_leave(_JOB, partial(_cancel, job))
            if quick:
                job.finished.wait(SHORT_SECONDS)
            ranked = ranking.cached_ranking(question, kind)
    if ranked is None and job is not None and job.is_live:
        job_view.follow(job, partial(_running_view, heads), is_live=True, every=0.5)
        return
    with job_view.job_container():
        _idle_view(question, heads, kind, job, ranked)


def _idle_view(
    question: AblationTarget,
    heads: Sequence[str],
    kind: str,
    job: RankJob | None,
    ranked: Ranking | None,
) -> None:
    """Show the button, the outcome of the last job and its results while no job runs."""
    spec = models.spec(question.model)
    left, right = st.columns([1, 2], vertical_alignment="center")
    left.button(
        f"Rank all {spec.n_layers * spec.n_heads} heads",
        type="primary",
        icon=":material/sort:",
        key="ablate_rank",
        on_click=_start,
        args=(question, kind),
        disabled=ranked is not None,
    )
    with right:
        if ranked is not None:
            st.text(
                f"Effect of each head alone ({kind}). Click a cell or a row to switch off that "
                "head too."
            )
        elif job is not None and job.error:
            messages.show_problem(job.error)
        elif job is not None and job.state == "stopped":
            st.text(f"Stopped at {job.progress:.0%}. The results so far are below.")
        else:
            st.text(
                f"{plural(len(question.ids), 'token')}. This takes a few seconds; you can stop it."
            )
    so_far = job.ranking if job is not None else Ranking(*_empty_ranking(question))
    _results(question, ranked or so_far, heads, pick=ranked is not None)


def _empty_ranking(question: AblationTarget) -> tuple[np.ndarray, np.ndarray]:
    spec = models.spec(question.model)
    empty = np.full((spec.n_layers, spec.n_heads), np.nan, dtype=np.float32)
    return empty, empty


def _enqueue(question: AblationTarget, kind: str) -> RankJob:
    """Queue a ranking that replaces the visitor's previous one.

    Raises: OverLimit if the queue is full.
    """
    job = RankJob(question, kind)
    GENERATIONS.put(
        job,
        replaces=st.session_state.get(_JOB),
        **job_view.job_owner(),
    )
    st.session_state[_JOB] = job
    return job


def _cancel(job: RankJob) -> None:
    """Stop an automatic ranking; it restarts when the page is opened again."""
    if job.is_live and st.session_state.get(_JOB) is job:
        job.stop()
        del st.session_state[_JOB]


def _start(question: AblationTarget, kind: str) -> None:
    try:
        _enqueue(question, kind)
    except OverLimit as error:
        st.session_state["ablate_refused"] = str(error)


def show_refusal() -> None:
    """Show once why the last ranking couldn't start."""
    message = st.session_state.pop("ablate_refused", None)
    if message is not None:
        messages.show_problem(message)


def _running_view(heads: Sequence[str], job: RankJob, was_live: bool) -> None:
    left, right = st.columns([1, 2], vertical_alignment="center")
    with left:
        job_view.stop_button(job, is_live=was_live, key="ablate_stop")
    ahead = job.n_ahead
    with right:
        note = f"Waiting: {ahead} ahead of you." if ahead else f"{job.progress:.0%} done"
        st.progress(job.progress, text=note)
    _results(job.question, job.ranking, heads, pick=False)


def _results(
    question: AblationTarget, ranked: Ranking, heads: Sequence[str], *, pick: bool
) -> None:
    """Show grid, table and buttons. Clicks work once the ranking is complete."""
    names = ranking.measures(question)
    off = [runs.parse(head) for head in heads]
    chart = live_grid.grid(ranked.sizes, ranked.seconds, off, names, pick=pick)
    table = ranking.table(question, ranked)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if pick:
            show_live(chart, key=_GRID, on_pick=_on_pick)
        else:
            show_live(chart, key="ablate_grid_partial")
    height = live_grid.grid_height(len(ranked.sizes)) - 140
    second = "%.4f" if question.mode == "states" else "%+.4f"  # a distance is never negative
    formats = {names[0]: "%.5f", names[1]: second}
    with right:
        with st.container(height=height, border=False):  # fixed height while rows arrive
            picking: dict[str, Any] = {"key": "ablate_ranked_partial"}
            if pick:
                picking = {"key": _TABLE, "on_select": _on_row_pick, "selection_mode": "single-row"}
                # the callback needs the head of the selected row
                st.session_state["ablate_order"] = table["name"].tolist()
            rows = tables.height(table, height)
            st.dataframe(
                table,
                hide_index=True,
                height=rows,
                column_order=["name", *names],
                column_config={
                    name: st.column_config.NumberColumn(format=form, width="small")
                    for name, form in formats.items()
                },
                **picking,
            )
        order = table["name"].tolist() if pick else []
        rest = [name for name in order if name not in heads]
        with st.container(horizontal=True):
            st.button(
                "Switch off strongest head",
                key="ablate_first",
                disabled=not order or list(heads) == order[:1],
                on_click=pickers.switch_off_only,
                args=(order[0] if order else None,),
            )
            st.button(
                "Add next strongest head",
                key="ablate_next",
                disabled=not rest or len(heads) >= runs.MAX_HEADS,
                on_click=pickers.switch_off,
                args=(rest[0] if rest else "",),
            )
            tables.download(
                "Download ranking (CSV)",
                table,
                f"{question.model}_ranking.csv",
                key="ablate_ranking_csv",
                disabled=table.empty,
            )


def _on_pick() -> None:
    for cell in st.session_state[_GRID].selection.get(live_grid.PICK, []):
        pickers.switch_off(str(HeadId(int(cell["layer"]), int(cell["head"]))))


def _on_row_pick() -> None:
    order = st.session_state.get("ablate_order", [])
    for row in st.session_state[_TABLE].selection.rows:
        if row < len(order):
            pickers.switch_off(order[row])
