"""Wait for long jobs like a page does, because jobs that no page watches are stopped."""

import threading
import time
from typing import TypeVar

from serving.jobs import BackgroundJob

SECONDS = 120.0

Job = TypeVar("Job", bound=BackgroundJob)


def finish(job: Job) -> Job:
    """Watch a job until it has ended, and return it."""
    watch_until(job.finished, job)
    return job


def watch_until(event: threading.Event, job: BackgroundJob) -> None:
    """Watch a job until the event is set."""
    end = time.monotonic() + SECONDS
    while not event.wait(0.25):
        assert time.monotonic() < end, f"still {job.state}"
        job.keep_alive()
