"""Test compute scheduling: a slot limit, pages before jobs, and exclusive timed work."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch

from serving import compute, runs
from serving.limits import OverLimit
from tests.helpers.bundled_models import ENCODER
from tests.helpers.waiting import wait_until

SECONDS = 60  # a test fails after this time instead of hanging


@pytest.fixture(autouse=True)
def _slots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the number of cores that a test requests (default three), whatever this machine has."""
    n_threads, n_slots = torch.get_num_threads(), getattr(request, "param", 3)
    monkeypatch.setattr(compute, "_n_threads", lambda: n_slots)
    monkeypatch.setattr(compute, "_n_slots", lambda: n_slots)
    yield
    torch.set_num_threads(n_threads)
    assert compute.n_requests() == 0
    assert compute.held_seconds() == 0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


on_one_core_and_on_several = pytest.mark.parametrize("_slots", [1, 3], indirect=True)


def _queue(pool: ThreadPoolExecutor, function: Callable[..., object], *arguments: object) -> Future:
    """Start a computation in another thread; return once it has requested its slot."""
    before = compute.n_requests()
    future = pool.submit(function, *arguments)
    wait_until(lambda: compute.n_requests() == before + 1, seconds=SECONDS, every=0.01)
    return future


def _all(futures: list[Future]) -> list[object]:
    return [future.result(SECONDS) for future in futures]


@on_one_core_and_on_several
def test_never_more_computations_than_slots(pool: ThreadPoolExecutor):
    lock, running, most = threading.Lock(), [0], [0]

    def computation(number: int) -> None:
        for _ in range(30):
            with compute.slot(exclusive=number % 5 == 0):
                with lock:
                    running[0] += 1
                    most[0] = max(most[0], running[0])
                    assert number % 5 or running[0] == 1
                with lock:
                    running[0] -= 1

    list(pool.map(computation, range(16)))
    assert 1 <= most[0] <= compute._n_slots()


@on_one_core_and_on_several
def test_pages_run_before_earlier_jobs(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []

    def computation(name: str) -> None:
        priority = compute.background() if "job" in name else nullcontext()
        with priority, compute.slot(exclusive=True):
            order.append(name)

    with compute.slot():
        futures = [_queue(pool, computation, name) for name in ("job 1", "job 2", "page 1")]
        futures.append(_queue(pool, computation, "page 2"))
        # as if it had waited for a long time
        monkeypatch.setattr(compute, "JOB_DELAY_SECONDS", -1.0)
        futures.append(_queue(pool, computation, "old job"))
        futures.append(_queue(pool, computation, "page 3"))
    _all(futures)
    assert order == ["old job", "page 1", "page 2", "page 3", "job 1", "job 2"]


def test_nothing_runs_next_to_exclusive_work(pool: ThreadPoolExecutor):
    started, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def holding() -> None:
        with compute.slot():
            started.set()
            assert go_on.wait(SECONDS)

    def computation(name: str, exclusive: bool) -> int:
        with compute.slot(exclusive=exclusive):
            order.append(name)
            assert len(compute._running) == 1 or not exclusive
            return torch.get_num_threads()

    first, second = (_queue(pool, holding) for _ in range(2))
    assert started.wait(SECONDS)
    timed = _queue(pool, computation, "timed", True)
    later = _queue(pool, computation, "later", False)  # doesn't overtake, although a slot is free
    assert order == []
    go_on.set()
    _all([first, second])
    assert (timed.result(SECONDS), later.result(SECONDS)) == (3, 3)
    assert order == ["timed", "later"]


@on_one_core_and_on_several
def test_page_runs_between_two_steps_of_a_job(pool: ThreadPoolExecutor):
    order: list[str] = []
    pages: list[Future] = []

    def page() -> None:
        with compute.slot():
            order.append("page")

    def items() -> Iterator[str]:
        for number in range(3):
            if number == 1:
                pages.append(_queue(pool, page))
            yield f"step {number}"

    with compute.background():
        for item in compute.steps(items(), seconds=0):
            if item == "step 1":
                _all(pages)
            order.append(item)
    assert order == ["step 0", "page", "step 1", "step 2"]


def test_failure_releases_the_slot():
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("the second step")

    with pytest.raises(ValueError, match="the second step"):
        list(compute.steps(items()))
    with pytest.raises(ZeroDivisionError), compute.slot():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), compute.slot(), compute.yield_slot():
        raise ZeroDivisionError
    assert compute.n_requests() == 0


def test_waiting_is_announced_and_limited(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compute, "SILENT_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(compute, "LONGEST_WAIT_SECONDS", 0.05)
    announced: list[str] = []

    def page() -> None:
        with compute.page_run(lambda: announced.append(compute.WAITING)), compute.slot():
            pass

    with compute.slot(exclusive=True):
        with pytest.raises(OverLimit, match="minute"):
            pool.submit(page).result(SECONDS)
        assert compute.n_requests() == 1
    page()  # runs immediately
    assert announced == [compute.WAITING]


def test_visitor_who_leaves_is_removed_from_the_queue(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compute, "SILENT_WAIT_SECONDS", 0.01)

    def leave() -> None:
        raise SystemExit  # like Streamlit's exceptions, it isn't a subclass of Exception

    def page() -> None:
        with compute.page_run(leave), compute.slot():
            pass

    with compute.slot(exclusive=True):
        with pytest.raises(SystemExit):
            pool.submit(page).result(SECONDS)
        assert compute.n_requests() == 1


@pytest.mark.parametrize("_slots", [1], indirect=True)
def test_no_deadlock_when_a_page_needs_another_threads_result(
    pool: ThreadPoolExecutor,
):
    """Without `yield_slot` the two would wait for each other."""
    run = runs.run(ENCODER, "Two pages of the same run")
    runs.run_forward.clear()
    with compute.slot():
        other = _queue(pool, runs.run, ENCODER, "Two pages of the same run")
        assert run.weights.shape[2:] == (8, 8)
        assert len(compute._running) == 1
    assert other.result(SECONDS).tensors is run.tensors


def test_computations_share_the_cores(pool: ThreadPoolExecutor):
    go_on, together = threading.Event(), threading.Barrier(3)

    def computation(wait: Callable[[], object]) -> int:
        with compute.slot():
            wait()
            return torch.get_num_threads()

    first = _queue(pool, computation, lambda: go_on.wait(SECONDS))
    others = [_queue(pool, computation, lambda: together.wait(SECONDS)) for _ in range(3)]
    assert compute.held_seconds() > 0
    go_on.set()
    assert first.result(SECONDS) == 3
    assert _all(others) == [1, 1, 1]
