"""Who may compute: a semaphore with one slot per core, in which pages go before background jobs.

    with compute.slot():
        output = model(ids)

A computation without company takes all cores. Several take one core each, because a forward pass
gains little from a second thread. Long work gives its slot back between two steps (`steps`), so
that pages never wait for long.
"""

from __future__ import annotations

import bisect
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from serving import metrics
from serving.limits import LONGEST_WAIT_SECONDS, SILENT_WAIT_SECONDS, OverLimit

Item = TypeVar("Item")

STEPS_SECONDS = 0.1  # of short steps that share a slot
# Pages that ask up to this long after a job go before it; a steady stream of pages can't starve it.
JOB_DELAY_SECONDS = 2.0
WAITING = "Many people are using this site right now. Your page continues in a few seconds."
BUSY = "Too many people are using this site right now. Try again in a minute."


@dataclass(eq=False)
class _Request:
    """A request for a slot. n_slots: how many it holds while it runs."""

    exclusive: bool
    n_slots: int = 1
    position: float = 0.0  # the smallest is next
    started: float = 0.0  # on the monotonic clock
    granted: threading.Event = field(default_factory=threading.Event)


class _ThreadState(threading.local):
    """What is known of a thread: its request while it holds a slot, and for whom it works."""

    request: _Request | None = None
    is_background = False
    on_wait: Callable[[], object] = staticmethod(lambda: None)


_thread = _ThreadState()
_waiting: list[_Request] = []  # by position
_running: list[_Request] = []
_lock = threading.Lock()


@functools.cache
def _n_threads() -> int:
    """How many threads torch uses by default: one per core."""
    import torch

    return torch.get_num_threads()


@functools.cache
def _n_slots() -> int:
    """How many computations may run at once: a GPU runs one at a time."""
    import torch

    return 1 if torch.cuda.is_available() else _n_threads()


@contextmanager
def page_run(on_wait: Callable[[], object]) -> Iterator[None]:
    """Call `on_wait` when this thread waits for a slot so long that the visitor should know."""
    _thread.on_wait = on_wait
    try:
        yield
    finally:
        del _thread.on_wait


@contextmanager
def background() -> Iterator[None]:
    """Inside, this thread works for a job: pages go first."""
    _thread.is_background = True
    try:
        yield
    finally:
        _thread.is_background = False


@contextmanager
def slot(*, exclusive: bool = False) -> Iterator[None]:
    """Wait for a slot and compute; a thread that holds one goes on at once.

    exclusive: nothing else runs at the same time, for what is timed.
    Raises: OverLimit after `LONGEST_WAIT_SECONDS`.
    """
    if _thread.request is not None:
        yield
        return
    request = _Request(exclusive)
    try:
        _enter(request)
        yield
    finally:
        _leave(request)


@contextmanager
def released() -> Iterator[None]:
    """Give up this thread's slot while it waits for another thread, which may need one."""
    request = _thread.request
    if request is None:
        yield
        return
    _leave(request)
    try:
        yield
    finally:
        _enter(request)


def steps(
    items: Iterable[Item], *, exclusive: bool = False, seconds: float = STEPS_SECONDS
) -> Iterator[Item]:
    """Compute items in slots of about `seconds`; with 0 seconds, one item in each.

    Items are handed on after their slot, so they must not change while later ones are computed.
    """
    iterator, has_more = iter(items), True
    while has_more:
        computed: list[Item] = []
        with slot(exclusive=exclusive):
            end, has_more = time.monotonic() + seconds, False
            for item in iterator:
                computed.append(item)
                if time.monotonic() >= end:
                    has_more = True
                    break
        yield from computed


def n_requests() -> int:
    """How many computations run or wait."""
    with _lock:
        return len(_waiting) + len(_running)


def held_seconds() -> float:
    """For how long the oldest running computation has held its slot; 0 if none runs."""
    with _lock:
        return max((time.monotonic() - request.started for request in _running), default=0.0)


def _enter(request: _Request) -> None:
    import torch

    asked, n_threads = time.monotonic(), _n_threads()
    request.position = asked + (JOB_DELAY_SECONDS if _thread.is_background else 0.0)
    request.granted.clear()
    with _lock:
        bisect.insort(_waiting, request, key=lambda waiting: waiting.position)
        _grant()
    if not request.granted.wait(SILENT_WAIT_SECONDS):
        _thread.on_wait()
        if not request.granted.wait(LONGEST_WAIT_SECONDS - SILENT_WAIT_SECONDS):
            raise OverLimit(BUSY)
    metrics.waited("compute", time.monotonic() - asked)
    _thread.request = request
    # torch keeps this number for each thread
    torch.set_num_threads(n_threads if request.n_slots == _n_slots() else 1)


def _leave(request: _Request) -> None:
    _thread.request = None
    with _lock:
        (_running if request in _running else _waiting).remove(request)
        _grant()


def _grant() -> None:
    """Start the next requests as long as slots are free; the caller holds the lock."""
    while _waiting:
        request = _waiting[0]
        is_alone = len(_waiting) == 1 and not _running
        request.n_slots = _n_slots() if request.exclusive or is_alone else 1
        if sum(running.n_slots for running in _running) + request.n_slots > _n_slots():
            return
        _running.append(_waiting.pop(0))
        request.started = time.monotonic()
        request.granted.set()
