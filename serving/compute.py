"""A semaphore with one compute slot per core, in which pages run before background jobs.

    with compute.slot():
        output = model(ids)

A single computation uses all cores. Several at the same time use one core each, because a forward
pass gains little from a second thread. Long work releases its slot between steps (`steps`), so that
pages never wait long.
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

STEPS_SECONDS = 0.1  # short steps share a slot for about this long
# A page goes before a job that has waited up to this long. Older jobs keep their position, so a
# steady stream of pages can't starve them.
JOB_DELAY_SECONDS = 2.0
WAITING = "Many people are using this site right now. Your page continues in a few seconds."
BUSY = "Too many people are using this site right now. Try again in a minute."


@dataclass(eq=False)
class _Request:
    """A request to compute. n_slots: the number of slots it holds while it runs."""

    exclusive: bool
    n_slots: int = 1
    position: float = 0.0  # the smallest runs next
    started: float = 0.0  # on the monotonic clock
    granted: threading.Event = field(default_factory=threading.Event)


class _ThreadState(threading.local):
    """Per-thread state: its request while it holds a slot, and whether it runs a job."""

    request: _Request | None = None
    is_background = False
    on_wait: Callable[[], object] = staticmethod(lambda: None)


_thread = _ThreadState()
_waiting: list[_Request] = []  # by position
_running: list[_Request] = []
_lock = threading.Lock()


@functools.cache
def _n_threads() -> int:
    """The number of threads that torch uses by default: one per core."""
    import torch

    return torch.get_num_threads()


@functools.cache
def _n_slots() -> int:
    """The number of computations that may run at once: one per core, or only one on a GPU."""
    import torch

    return 1 if torch.cuda.is_available() else _n_threads()


@contextmanager
def page_run(on_wait: Callable[[], object]) -> Iterator[None]:
    """Call `on_wait` if this thread waits so long for a slot that the visitor should know."""
    _thread.on_wait = on_wait
    try:
        yield
    finally:
        del _thread.on_wait


@contextmanager
def background() -> Iterator[None]:
    """Mark this thread as running a job inside a `with` block, so that pages go first."""
    _thread.is_background = True
    try:
        yield
    finally:
        _thread.is_background = False


@contextmanager
def slot(*, exclusive: bool = False) -> Iterator[None]:
    """Wait for a slot; a thread that already holds one continues immediately.

    exclusive: run alone, for measurements of time.
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
def yield_slot() -> Iterator[None]:
    """Release this thread's slot while it waits for another thread that may need one."""
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
    """Compute items in slots of about `seconds` each; 0 means one item per slot.

    Items are yielded after their slot ends, so later items must not change earlier ones.
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
    """The number of running and waiting computations."""
    with _lock:
        return len(_waiting) + len(_running)


def held_seconds() -> float:
    """Seconds for which the oldest running computation has held its slot; 0 if none is running."""
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
    metrics.observe_wait("compute", time.monotonic() - asked)
    _thread.request = request
    # torch stores this setting per thread
    torch.set_num_threads(n_threads if request.n_slots == _n_slots() else 1)


def _leave(request: _Request) -> None:
    _thread.request = None
    with _lock:
        (_running if request in _running else _waiting).remove(request)
        _grant()


def _grant() -> None:
    """Start the next requests while slots are free; the caller holds the lock."""
    while _waiting:
        request = _waiting[0]
        is_alone = len(_waiting) == 1 and not _running
        request.n_slots = _n_slots() if request.exclusive or is_alone else 1
        if sum(running.n_slots for running in _running) + request.n_slots > _n_slots():
            return
        _running.append(_waiting.pop(0))
        request.started = time.monotonic()
        request.granted.set()
