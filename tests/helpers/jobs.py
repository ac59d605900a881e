"""Wait for long work as a page does: a job that nobody looks at stops by itself."""

import threading
import time
from typing import TypeVar

from serving.jobs import BackgroundJob

SECONDS = 120.0

Job = TypeVar("Job", bound=BackgroundJob)


def finish(job: Job) -> Job:
    """The job once it is over, watched until then, however busy the machine is."""
    watch_until(job.finished, job)
    return job


def watch_until(event: threading.Event, job: BackgroundJob) -> None:
    """Wait for what happens in a job, which is watched until then."""
    end = time.monotonic() + SECONDS
    while not event.wait(0.25):
        assert time.monotonic() < end, f"still {job.state}"
        job.keep_alive()
