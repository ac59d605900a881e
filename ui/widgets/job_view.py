"""The view of a long job on a page: repainted while the job lives, with a Stop button."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from serving.jobs import Work
from serving.queues import BROWSER_COOKIE
from ui.around.visitors import address

Job = TypeVar("Job", bound=Work)
IN_LINE_SECONDS, LONGEST_IN_LINE_SECONDS = 0.5, 2.0  # between two pictures of a job in line


def whose() -> dict[str, str | None]:
    """Whose jobs are put into a queue now, and from where: for `JobQueue.put`."""
    return {"owner": st.context.cookies.get(BROWSER_COOKIE), "address": address()}


def follow(job: Job, draw: Callable[[Job, bool], None], *, live: bool, every: float) -> None:
    """Draw a job now and, while it lives, again every `every` seconds, apart from the page.

    draw: the page's own picture of the job, whose queue lets it run as long as somebody looks. It
    is told whether the job was live just before it was called, so that what it reads from the job
    is at least that fresh. live: whether the job was live when the page began to draw; the page
    reads it once, since the job may end at any moment. A job that had others ahead of it when the
    page ran is drawn less often, by `IN_LINE_SECONDS` for each of them: many people are on the site
    then, and its place in the line changes slowly. When the job ends the whole page runs again.
    """
    every = max(every, min(job.ahead * IN_LINE_SECONDS, LONGEST_IN_LINE_SECONDS))
    st.fragment(_view, run_every=every if live else None)(job, draw, live)


def _view(job: Job, draw: Callable[[Job, bool], None], timed: bool) -> None:
    was_live = job.live  # read first: what is drawn below is then at least that fresh
    job.watch()
    draw(job, was_live)
    if timed and not was_live:
        st.rerun()  # the job is over: the next run of the page makes this view without a timer


# Where a page draws what `follow` drew while a job was live. A fragment is a container of its own:
# what stands in one, too, replaces it element by element; anything else stands beside it for a
# moment, everything twice.
place_of_a_job = st.container


def stop_button(job: Work | None, *, live: bool, key: str) -> None:
    """A button that stops a job. It stays when nothing runs, so that nothing moves."""
    st.button(
        "Stop",
        icon=":material/stop:",
        key=key,
        on_click=None if job is None else job.stop,
        disabled=not live,
    )
