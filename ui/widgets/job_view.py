"""The view of a long job: redrawn while the job is running, with a stop button."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from serving.jobs import BackgroundJob
from serving.queues import BROWSER_COOKIE
from ui.streamlit_patches.client_address import client_address

Job = TypeVar("Job", bound=BackgroundJob)
QUEUED_SECONDS, MAX_QUEUED_SECONDS = 0.5, 2.0  # between redraws of a job in the queue


def job_owner() -> dict[str, str | None]:
    """The owner and address of this visitor's jobs, as arguments of `JobQueue.put`."""
    return {"owner": st.context.cookies.get(BROWSER_COOKIE), "address": client_address()}


def follow(job: Job, draw: Callable[[Job, bool], None], *, is_live: bool, every: float) -> None:
    """Draw a job now and, while it's live, every `every` seconds, without rerunning the page.

    draw: draws the job. Its second argument is whether the job was live just before the call, so
    anything it reads from the job is at least that recent. The queue keeps a job running only while
    a page calls this. is_live: whether the job was live when the page started drawing. The page
    reads it only once, because the job may end at any time. Queued jobs are redrawn less often:
    each job ahead adds `QUEUED_SECONDS`, because the queue position changes slowly when the site is
    busy. When the job ends, the whole page reruns.
    """
    every = max(every, min(job.n_ahead * QUEUED_SECONDS, MAX_QUEUED_SECONDS))
    st.fragment(_view, run_every=every if is_live else None)(job, draw, is_live)


def _view(job: Job, draw: Callable[[Job, bool], None], has_timer: bool) -> None:
    was_live = job.is_live  # read first, so that everything drawn below is at least that recent
    job.keep_alive()
    draw(job, was_live)
    if has_timer and not was_live:
        st.rerun()  # the job has ended: redraw the page without a timer


# Container for the final results of a job that `follow` drew while it was live. A fragment is a
# container, and Streamlit replaces its elements one by one if the page uses a container, too.
# Otherwise everything would appear twice for a moment.
job_container = st.container


def stop_button(job: BackgroundJob | None, *, is_live: bool, key: str) -> None:
    """A button that stops a job. It's disabled, not hidden, between jobs, so nothing moves."""
    st.button(
        "Stop",
        icon=":material/stop:",
        key=key,
        on_click=None if job is None else job.stop,
        disabled=not is_live,
    )
