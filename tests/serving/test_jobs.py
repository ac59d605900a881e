"""Test the job queue: its order, and the number of jobs per visitor."""

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from serving import compute
from serving.jobs import NICENESS, BackgroundJob, JobQueue
from serving.limits import MAX_WAITING_PER_ADDRESS, MAX_WAITING_PER_VISITOR, OverLimit
from tests.helpers.jobs import finish
from tests.helpers.waiting import wait_until


class NamedJob(BackgroundJob):
    """Records when it runs; with a gate, waits for it."""

    def __init__(self, name: str, done: list[str], gate: threading.Event | None = None) -> None:
        super().__init__()
        self.name, self._done, self._gate = name, done, gate
        self.begun = threading.Event()

    def work(self) -> None:
        self.begun.set()
        if self._gate is not None:
            self._gate.wait(60)
        self._done.append(self.name)


class Line:
    """A queue whose first job blocks all others until `go` is called."""

    def __init__(self, max_waiting: int = 6) -> None:
        self.queue = JobQueue(max_waiting=max_waiting)
        self.done, self.gate = list[str](), threading.Event()
        first = NamedJob("first", self.done, self.gate)
        self.queue.put(first, owner="somebody")
        assert first.begun.wait(60)
        self.jobs = [first]

    def put(
        self,
        name: str,
        owner: str | None,
        instead_of: BackgroundJob | None = None,
        address: str | None = None,
    ) -> NamedJob:
        job = NamedJob(name, self.done)
        self.queue.put(job, owner=owner, replaces=instead_of, address=address)
        self.jobs.append(job)
        return job

    def go(self) -> list[str]:
        self.gate.set()
        for job in self.jobs:
            finish(job)
        return self.done[1:]


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.gate.set()


def test_first_jobs_come_before_second_jobs(line: Line):
    for name, owner in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")):
        line.put(name, owner)
    assert [line.queue.n_ahead(job) for job in line.jobs] == [0, 1, 4, 2, 5, 3]
    assert line.go() == ["a1", "b1", "c1", "a2", "b2"]


def test_running_job_is_its_visitors_first(line: Line):
    for name, owner in (("second", "somebody"), ("b1", "b"), ("c1", "c")):
        line.put(name, owner)
    assert line.go() == ["b1", "c1", "second"]


def test_unknown_visitors_queue_in_order(line: Line):
    for name in ("1", "2", "3", "4"):
        line.put(name, None)
    assert line.go() == ["1", "2", "3", "4"]


def test_one_visitor_with_many_tabs_leaves_capacity_for_others(line: Line):
    for number in range(MAX_WAITING_PER_VISITOR):
        line.put(f"a{number}", "a")
    with pytest.raises(OverLimit, match=str(MAX_WAITING_PER_VISITOR)):
        line.put("too many", "a")
    line.put("b", "b")
    # replacing one of them doesn't add a job
    line.put("again", "a", instead_of=line.jobs[1])
    assert line.go() == ["b", "a1", "again"] or line.done[1:] == ["a1", "b", "again"]


def test_forged_cookies_do_not_skip_the_queue(line: Line):
    for number in range(3):
        line.put(f"a{number}", f"made up {number}", address="203.0.113.9")
    line.put("b", "b", address="198.51.100.7")
    line.put("c", "c", address="198.51.100.8")
    line.put("b again", "b", address="198.51.100.7")
    assert line.go() == ["a0", "b", "c", "a1", "a2", "b again"]


def test_visitors_of_one_address_are_queued_in_order(line: Line):
    for name, owner in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("c1", "c")):
        line.put(name, owner, address="203.0.113.9")  # a shared address, as in a school
    assert line.go() == ["a1", "b1", "c1", "a2"]


def test_one_address_leaves_capacity_for_others():
    line = Line(max_waiting=8)
    for number in range(MAX_WAITING_PER_ADDRESS):
        line.put(f"a{number}", f"made up {number}", address="203.0.113.9")
    with pytest.raises(OverLimit, match=str(MAX_WAITING_PER_ADDRESS)):
        line.put("too many", "made up", address="203.0.113.9")
    line.put("in place", "made up 0", line.jobs[1], "203.0.113.9")
    line.put("b", "b", address="198.51.100.7")
    line.gate.set()


def test_full_queue_is_full_for_everyone(line: Line):
    for number in range(6):
        line.put(str(number), str(number))
    with pytest.raises(OverLimit, match="6"):
        line.put("late", "late")


def test_queue_is_free_when_nothing_runs_or_waits():
    line = Line()
    assert not line.queue.is_free
    line.put("second", "somebody else")
    line.jobs[0].stop()  # nearly finished, but another job waits
    assert not line.queue.is_free
    assert line.go() == ["second"]
    assert line.queue.is_free
    assert JobQueue().is_free


@pytest.mark.skipif(sys.platform != "linux", reason="threads only have a priority on Linux")
def test_pages_have_priority_over_jobs():
    priorities = list[int]()

    class Ranked(BackgroundJob):
        def work(self) -> None:
            priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    queue, job = JobQueue(), Ranked()
    queue.put(job)
    finish(job)
    assert priorities == [max(mine, NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine


@pytest.mark.skipif(sys.platform != "linux", reason="threads only have a priority on Linux")
def test_jobs_run_even_if_the_priority_cannot_be_set(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    done = list[str]()
    queue, job = JobQueue(), NamedJob("job", done)
    queue.put(job)
    finish(job)
    assert done == ["job"]


def test_page_computes_before_earlier_job():
    had = list[str]()

    def computation(name: str) -> None:
        with compute.slot(exclusive=True):
            had.append(name)

    class Pass(BackgroundJob):
        def work(self) -> None:
            computation("job")

    queue, job = JobQueue(), Pass()
    page = threading.Thread(target=computation, args=("page",))
    with compute.slot():
        queue.put(job)
        wait_until(lambda: compute.n_requests() == 2, seconds=10, every=0.01)
        page.start()
        wait_until(lambda: compute.n_requests() == 3, seconds=10, every=0.01)
    finish(job)
    page.join(10)
    assert had == ["page", "job"]


def test_dead_worker_is_replaced():
    done = list[str]()
    queue, job = JobQueue(), NamedJob("job", done)
    queue._worker = threading.Thread(target=lambda: None)  # it ended without notifying anyone
    queue.put(job)
    finish(job)
    assert done == ["job"]


@pytest.mark.parametrize("ends_with", [None, ValueError("too long")])
def test_stopped_job_stays_stopped_however_its_work_ends(ends_with: Exception | None):
    class Deaf(BackgroundJob):
        def work(self) -> None:
            self.stop()
            if ends_with is not None:
                raise ends_with

    job = Deaf()
    job.run()
    assert (job.state, job.error) == ("stopped", "")
