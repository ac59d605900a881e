"""Long work as jobs: queued, watched and stopped.

One worker thread of a queue runs one job at a time, so that two visitors' runs do not spoil each
other's times. There are several queues (`serving.queues`). Jobs and pages share the compute slots
(`serving.compute`), and pages go first, for a slot and for a core. A job that nobody watches stops
by itself. Nothing here touches Streamlit.
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
    MAX_WAITING_OF_A_VISITOR,
    MAX_WAITING_OF_AN_ADDRESS,
    InvalidInput,
    OverLimit,
)

NICENESS = 10  # of the threads of jobs, as the system counts it: pages have 0 and go first
State = Literal["waiting", "running", "done", "stopped", "failed"]

# A page asks two to four times a second; a slow one, while a model loads beside it, now and then.
UNWATCHED_SECONDS = 10.0

# A tab that has been hidden for five minutes asks once a minute: browsers hold its timers back.
HIDDEN_AFTER_SECONDS, HIDDEN_UNWATCHED_SECONDS = 290.0, 75.0


class Stopped(Exception):
    """Raised inside a forward pass when the visitor has stopped the job."""


class Work:
    """A piece of long work and what has become of it. The worker writes, the page reads."""

    def __init__(self) -> None:
        self.state: State = "waiting"
        self.error = ""
        self.finished = threading.Event()
        self._changing = threading.Lock()  # of the state, which the worker and the page may set
        self._stop = threading.Event()
        self._begun = self._seen = time.monotonic()
        self.queued = self._begun
        self.owner: object = self  # whose it is, and from where; the queue writes both down
        self.address: object = self
        self.queue: JobQueue | None = None  # the one it was put into
        self._stopped = math.inf  # when it was told to stop

    def work(self) -> None:
        """Do it; called on the worker's thread. Calls `check_stop` now and then."""
        raise NotImplementedError

    @property
    def live(self) -> bool:
        """Whether something may still change for the visitor: neither finished nor told to stop."""
        return not (self.finished.is_set() or self._stop.is_set())

    @property
    def ahead(self) -> int:
        """How many jobs come before it in its queue; 0 for one that runs or is over."""
        return 0 if self.queue is None else self.queue.ahead(self)

    def watch(self) -> None:
        """Say that somebody is still looking."""
        self._seen = time.monotonic()

    def stop(self) -> None:
        """End the job between two layers of the pass that is running.

        For the visitor it is over at once; the worker may first finish loading a model.
        """
        self._stopped = min(self._stopped, time.monotonic())
        self._stop.set()
        self._become("stopped")

    def _become(self, state: State, error: str = "") -> None:
        """Take another state; what is over, or was stopped, stays so."""
        with self._changing:
            if self.state in ("waiting", "running"):
                self.error, self.state = error, state

    @property
    def abandoned(self) -> bool:
        """Whether it was stopped, or nobody has looked for a while."""
        return self._stop.is_set() or self.overdue > 0

    @property
    def overdue(self) -> float:
        """For how many seconds it has been abandoned; 0 if it is not."""
        now = time.monotonic()
        old = now - self._begun > HIDDEN_AFTER_SECONDS
        patience = HIDDEN_UNWATCHED_SECONDS if old else UNWATCHED_SECONDS
        return max(0.0, now - self._seen - patience, now - self._stopped)

    def check_stop(self, _: int = 0) -> None:
        """Raise Stopped if the job is abandoned; the hook `before_layer` of a forward pass."""
        if self.abandoned:
            raise Stopped

    def run(self) -> None:
        """Do the work, on the worker's thread. Never raises: the outcome is in `state`."""
        try:
            self.check_stop()
            self._become("running")
            self.work()
            self._become("done")
        except Stopped:
            self._become("stopped")
        except InvalidInput as error:  # what was asked for cannot be: no error of the site
            self._become("failed", str(error))
        except models.LOAD_ERRORS as error:
            metrics.error(error, "job")
            self._become("failed", str(error))
        except Exception as error:  # the visitor sees that it failed, the log why; others go on
            logging.getLogger(__name__).exception("a job failed")
            metrics.error(error, "job")
            self._become("failed", "The model failed on this text; see the server log.")


class JobQueue:
    """One job runs, the others wait and see their place.

    First come, first served, but the first jobs of all visitors come before the second of anybody,
    and so do, among those, the first of all addresses.
    """

    def __init__(self, max_waiting: int = MAX_WAITING_JOBS, *, name: str = metrics.OTHER) -> None:
        self.name = name  # in what is counted
        self._max_waiting = max_waiting
        self._waiting: deque[Work] = deque()
        self._running: Work | None = None
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None

    def put(
        self,
        job: Work,
        *,
        instead_of: Work | None = None,
        owner: str | None = None,
        address: str | None = None,
    ) -> None:
        """Queue a job; `instead_of`, the visitor's earlier one, is stopped if it is accepted.

        owner: the visitor, over all tabs; None for one that is not known again. address: from where
        the visitor comes, which many may share; None where nobody knows.
        Raises: OverLimit if the queue is full, or the visitor or the address has enough jobs in it;
        the earlier job then goes on.
        """
        with self._changed:
            self._drop_abandoned()
            job.owner, job.queue = owner or job, self
            job.address = address or job.owner
            own = sum(w.owner == job.owner and w is not instead_of for w in self._waiting)
            if own >= MAX_WAITING_OF_A_VISITOR:
                raise OverLimit(
                    f"You have {own} runs waiting in other tabs. Stop one of them, or wait for it; "
                    "what you typed is still in the box."
                )
            near = sum(w.address == job.address and w is not instead_of for w in self._waiting)
            if near >= MAX_WAITING_OF_AN_ADDRESS:
                raise OverLimit(
                    f"{near} runs from your network are already waiting. Try again in a minute; "
                    "what you typed is still in the box."
                )
            others = len(self._waiting) - (instead_of in self._waiting)
            if others >= self._max_waiting:
                raise OverLimit(
                    f"{others} visitors are already waiting. Try again in a minute; "
                    "what you typed is still in the box."
                )
            if instead_of is not None:
                instead_of.stop()
                self._drop_abandoned()
            job.queued = time.monotonic()
            self._waiting.insert(self._place_of(job), job)
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._worker.start()
            self._changed.notify()

    def _place_of(self, job: Work) -> int:
        """Behind all jobs that are of no later rank.

        A job's rank is whether it is its visitor's first, second and so on, the one that runs
        included, and of those of one rank, whether it is the first, second and so on of its
        address.
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

    def ahead(self, job: Work) -> int:
        """How many jobs come before this one; 0 for one that runs or is over."""
        with self._changed:
            self._drop_abandoned()
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + self._is_running()

    def _is_running(self) -> bool:
        """Whether a job runs; one that was told to stop, or has just ended, is as good as gone."""
        job = self._running
        return job is not None and job.live and not job.abandoned

    def _drop_abandoned(self) -> None:
        for job in [job for job in self._waiting if job.abandoned]:
            self._waiting.remove(job)
            job.stop()  # so that it stays over, even if its visitor asks for it just now
            self._run(job)  # ends at once, as stopped

    @property
    def length(self) -> int:
        """How many jobs wait; the one that runs is not among them."""
        with self._changed:
            return len(self._waiting)

    @property
    def is_free(self) -> bool:
        """Whether a job that is put in now would begin at once."""
        with self._changed:
            return not (self._waiting or self._is_running())

    @property
    def stuck_seconds(self) -> float:
        """For how long the running job has gone on after it was abandoned; 0 if all is well.

        Infinite where jobs wait for a worker that has died.
        """
        with self._changed:
            if self._waiting and not (self._worker and self._worker.is_alive()):
                return math.inf
            return self._running.overdue if self._running is not None else 0.0

    def _run(self, job: Work) -> None:
        begin = time.monotonic()
        metrics.waited(self.name, begin - job.queued)
        try:
            job.run()
            metrics.job_ended(self.name, job.state, time.monotonic() - begin)
        finally:
            job.finished.set()  # when it is counted: nothing comes behind it

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
    """On Linux, let this thread use only the processor time that pages leave."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        with suppress(OSError):  # where a sandbox refuses it, jobs have the rank of pages
            os.setpriority(os.PRIO_PROCESS, thread, max(now, NICENESS))
