"""Wait for long work as a page does: a job that nobody looks at stops by itself."""

import time
from typing import TypeVar

from serving.jobs import Work

SECONDS = 120.0

Job = TypeVar("Job", bound=Work)


def finish(job: Job) -> Job:
    """The job once it is over, watched until then, however busy the machine is."""
    end = time.monotonic() + SECONDS
    while not job.finished.wait(0.25):
        assert time.monotonic() < end, f"still {job.state}"
        job.watch()
    return job
