"""A queue for long-running jobs that can be watched and stopped.

Each queue has one worker thread, which runs one job at a time, so that visitors' runs don't distort
each other's times. There are several queues (`serving.queues`). Jobs and pages share the compute
slots (`serving.compute`), and pages have priority. A job stops when nobody is watching it. This
module doesn't depend on Streamlit.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from typing import Literal

from serving import compute, metrics, models
from serving.limits import (
    MAX_WAITING_JOBS,
    MAX_WAITING_PER_ADDRESS,
    MAX_WAITING_PER_VISITOR,
    InvalidInput,
    OverLimit,
)

NICENESS = 10  # for job threads; pages have 0, so the system prefers them
State = Literal["waiting", "running", "done", "stopped", "failed"]

# A page polls its job two to four times a second, but less often while a model is loading.
UNWATCHED_SECONDS = 10.0

# Once a tab has been hidden for five minutes, browsers only let it poll once a minute.
HIDDEN_AFTER_SECONDS, HIDDEN_UNWATCHED_SECONDS = 290.0, 75.0


class JobStopped(Exception):
    """Raised inside a forward pass after the visitor has stopped the job."""


class BackgroundJob:
    """A job and its state, which the worker writes and the page reads."""

    def __init__(self) -> None:
        self.state: State = "waiting"
        self.error = ""
        self.finished = threading.Event()
        self._changing = threading.Lock()  # guards the state, which two threads may set
        self._stop = threading.Event()
        self._started = self._last_seen = time.monotonic()
        self.queued = self._started
        self.owner: object = self  # the queue sets the visitor and their address
        self.address: object = self
        self.queue: JobQueue | None = None
        self._stopped = math.inf  # the time of the request to stop

    def work(self) -> None:
        """Do the work, on the worker's thread; call `check_stop` regularly."""
        raise NotImplementedError

    @property
    def is_live(self) -> bool:
        """Whether the job is neither finished nor being stopped."""
        return not (self.finished.is_set() or self._stop.is_set())

    @property
    def n_ahead(self) -> int:
        """The number of jobs before this one in its queue; 0 if it's running or finished."""
        return 0 if self.queue is None else self.queue.n_ahead(self)

    def keep_alive(self) -> None:
        """Record that a page is still watching this job."""
        self._last_seen = time.monotonic()

    def stop(self) -> None:
        """Stop the job before the next layer of its current forward pass.

        For the visitor, it ends immediately. The worker may have to finish loading a model first.
        """
        self._stopped = min(self._stopped, time.monotonic())
        self._stop.set()
        self._set_state("stopped")

    def _set_state(self, state: State, error: str = "") -> None:
        """Change the state, unless the job has already ended."""
        with self._changing:
            if self.state in ("waiting", "running"):
                self.error, self.state = error, state

    @property
    def is_abandoned(self) -> bool:
        """Whether the job was stopped, or no page has watched it for a while."""
        return self._stop.is_set() or self.abandoned_seconds > 0

    @property
    def abandoned_seconds(self) -> float:
        """Seconds since the job was abandoned; 0 if it isn't."""
        now = time.monotonic()
        old = now - self._started > HIDDEN_AFTER_SECONDS
        patience = HIDDEN_UNWATCHED_SECONDS if old else UNWATCHED_SECONDS
        return max(0.0, now - self._last_seen - patience, now - self._stopped)

    def check_stop(self, _: int = 0) -> None:
        """Raise Stopped if the job is abandoned; used as the `before_layer` hook of a pass."""
        if self.is_abandoned:
            raise JobStopped

    def run(self) -> None:
        """Do the work on the worker's thread. Never raises; the outcome is in `state`."""
        try:
            self.check_stop()
            self._set_state("running")
            self.work()
            self._set_state("done")
        except JobStopped:
            self._set_state("stopped")
        except InvalidInput as error:  # the visitor's input is at fault, not the site
            self._set_state("failed", str(error))
        except models.LOAD_ERRORS as error:
            metrics.count_error(error, "job")
            self._set_state("failed", str(error))
        except Exception as error:  # keep the worker alive for other jobs; details go to the log
            logging.getLogger(__name__).exception("a job failed")
            metrics.count_error(error, "job")
            self._set_state(
                "failed", "The model failed on this text. The server log has the details."
            )


class JobQueue:
    """A queue that runs one job at a time and shows the others their position.

    Jobs run in order of arrival, with two exceptions: every visitor's first job comes before
    anyone's second, and among those, every address's first job comes before any address's second.
    """

    def __init__(self, max_waiting: int = MAX_WAITING_JOBS, *, name: str = metrics.OTHER) -> None:
        self.name = name  # the label in metrics
        self._max_waiting = max_waiting
        self._waiting: deque[BackgroundJob] = deque()
        self._running: BackgroundJob | None = None
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None

    def put(
        self,
        job: BackgroundJob,
        *,
        replaces: BackgroundJob | None = None,
        owner: str | None = None,
        address: str | None = None,
    ) -> None:
        """Queue a job, and stop the visitor's earlier job `replaces` if it's accepted.

        owner: identifies the visitor across tabs; None if unknown. address: the visitor's network
        address, which several visitors may share; None if unknown.
        Raises: OverLimit if the queue is full, or the visitor or the address has too many waiting
        jobs. The earlier job then continues.
        """
        with self._changed:
            self._drop_abandoned()
            job.owner, job.queue = owner or job, self
            job.address = address or job.owner
            own = sum(w.owner == job.owner and w is not replaces for w in self._waiting)
            if own >= MAX_WAITING_PER_VISITOR:
                raise OverLimit(
                    f"You already have {own} runs waiting in other tabs. Stop one of them or wait "
                    "until it's done. Your text is still in the box."
                )
            near = sum(w.address == job.address and w is not replaces for w in self._waiting)
            if near >= MAX_WAITING_PER_ADDRESS:
                raise OverLimit(
                    f"{near} runs from your network are already waiting. Try again in a minute. "
                    "Your text is still in the box."
                )
            others = len(self._waiting) - (replaces in self._waiting)
            if others >= self._max_waiting:
                raise OverLimit(
                    f"The queue is full ({others} runs are waiting). Try again in a minute. Your "
                    "text is still in the box."
                )
            if replaces is not None:
                replaces.stop()
                self._drop_abandoned()
            job.queued = time.monotonic()
            self._waiting.insert(self._position_of(job), job)
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._worker.start()
            self._changed.notify()

    def _position_of(self, job: BackgroundJob) -> int:
        """The queue position for a new job: after all jobs of the same or an earlier rank.

        A job's rank is its number among its visitor's jobs, including a running one, and then its
        number among the jobs of its address.
        """
        runs = [self._running] if self._running is not None and self._is_running() else []
        owners = Counter(running.owner for running in runs)
        addresses = Counter(running.address for running in runs)
        ranks = []
        for one in (*self._waiting, job):
            ranks.append((owners[one.owner], addresses[one.address]))
            owners[one.owner] += 1
            addresses[one.address] += 1
        *waiting, own = ranks
        places = [place for place, rank in enumerate(waiting, start=1) if rank <= own]
        return max(places, default=0)

    def n_ahead(self, job: BackgroundJob) -> int:
        """The number of jobs before this one; 0 if it's running or finished."""
        with self._changed:
            self._drop_abandoned()
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + self._is_running()

    def _is_running(self) -> bool:
        """Whether a job is running that is neither finished nor being stopped."""
        job = self._running
        return job is not None and job.is_live and not job.is_abandoned

    def _drop_abandoned(self) -> None:
        for job in [job for job in self._waiting if job.is_abandoned]:
            self._waiting.remove(job)
            job.stop()  # so that it stays stopped, even if its page polls right now
            self._run(job)  # ends immediately in the state "stopped"

    @property
    def length(self) -> int:
        """The number of waiting jobs, not counting the running one."""
        with self._changed:
            return len(self._waiting)

    @property
    def is_free(self) -> bool:
        """Whether a new job would start immediately."""
        with self._changed:
            return not (self._waiting or self._is_running())

    @property
    def stuck_seconds(self) -> float:
        """Seconds for which the running job has continued after being abandoned, usually 0.

        Infinite if jobs are waiting but the worker has died.
        """
        with self._changed:
            if self._waiting and not (self._worker and self._worker.is_alive()):
                return math.inf
            return self._running.abandoned_seconds if self._running is not None else 0.0

    def _run(self, job: BackgroundJob) -> None:
        begin = time.monotonic()
        metrics.observe_wait(self.name, begin - job.queued)
        try:
            job.run()
            metrics.count_job(self.name, job.state, time.monotonic() - begin)
        finally:
            job.finished.set()  # last, so that the metrics are complete once a job is finished

    def _work(self) -> None:
        _lower_priority()
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: bool(self._waiting))
                self._running = job = self._waiting.popleft()
            with compute.background():
                self._run(job)


def _lower_priority() -> None:
    """Lower this thread's priority below that of pages (Linux only)."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        with suppress(
            OSError
        ):  # a sandbox may forbid it; jobs then have the same priority as pages
            os.setpriority(os.PRIO_PROCESS, thread, max(now, NICENESS))
