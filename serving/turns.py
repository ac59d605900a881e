"""Whose forward pass runs now: those of pages first, and no more than there are cores.

A pass that nobody else waits for has the machine for itself, with all threads. Where several were
asked for, each has one thread, and as many run at once as there are cores: a pass gains little from
a second thread, so that two of them side by side take half the time of one after the other. What is
timed is always alone, or its time would say nothing. Long work takes a turn for each of its steps,
or for a tenth of a second of short ones, so that a page never waits for long; a plain lock would
let that work take it again and again while others wait. Among the pages, and among the jobs, those
who asked first are first; but the first pass of every address comes before the second of any, so
that one visitor with many open pages does not hold up the others. A job that has waited for
`PATIENCE_SECONDS` is overtaken no more. With a hundred visitors, pages wait for their turns half as
long as in one line with the jobs, and as many texts are written. A page that waits for its turn, or
has it, does not count among those that run (`serving.page_runs`).
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from serving import metrics, page_runs

Item = TypeVar("Item")

SLICE_SECONDS = 0.1  # of a turn that holds several short steps
PATIENCE_SECONDS = 2.0  # for so long a job in line lets pages go first


@dataclass
class _Addresses:
    """How an address is asked for."""

    of_thread: Callable[[], str | None] = lambda: None


@dataclass(eq=False)
class _Turn:
    """Somebody in line. `whole`: nobody else runs beside it; known when it begins.

    rank: how many turns of the same address had been asked for and were not over.
    """

    alone: bool
    one_core: bool
    of_a_job: bool
    address: object
    rank: int
    asked: float  # on the monotonic clock
    begins: threading.Event = field(default_factory=threading.Event)
    begun: float = 0.0
    whole: bool = False


_addresses = _Addresses()
_waiting: deque[_Turn] = deque()
_running: list[_Turn] = []
_changing = threading.Lock()
# Of a thread: `lets_pages_go_first`, whether its turns are those of a job; `holds`, whether it has
# a turn now.
_thread = threading.local()


def let_pages_go_first() -> None:
    """From now on, all turns that this thread asks for are turns of a job."""
    _thread.lets_pages_go_first = True


def know_addresses(of_thread: Callable[[], str | None]) -> None:
    """Let this say from where the visitor comes for whom a thread works; None: nobody knows."""
    _addresses.of_thread = of_thread


def _address_of_thread() -> object:
    """From where the visitor comes; where nobody knows, every turn is as from one of its own."""
    return _addresses.of_thread() or object()


def is_held() -> bool:
    """Whether this thread has a turn now: then it must not wait for others, who may want one."""
    return getattr(_thread, "holds", False)


@functools.cache
def _threads() -> int:
    """How many threads torch takes where nothing was set: as many as there are cores."""
    import torch

    return torch.get_num_threads()


@functools.cache
def _seats() -> int:
    """How many passes may run at once: one on a GPU, which shares nothing out."""
    import torch

    return 1 if torch.cuda.is_available() else _threads()


@contextmanager
def turn(*, alone: bool = False, one_core: bool = False) -> Iterator[None]:
    """Wait for all who come before and have no room beside each other, then run.

    Inside a turn of the same thread it is that turn. alone: for what is timed; nobody runs beside
    it. one_core: for work so small that a second thread slows it down, and which leaves the other
    cores to others.
    """
    import torch

    if is_held():
        yield
        return
    of_a_job, address = getattr(_thread, "lets_pages_go_first", False), _address_of_thread()
    with _changing:
        rank = sum(other.address == address for other in (*_waiting, *_running))
        mine = _Turn(alone, one_core, of_a_job, address, rank, asked=time.monotonic())
        n_threads = _threads()  # first read here, before any turn has set another number
        _waiting.insert(_place_of(mine), mine)
        _begin()
    with page_runs.outside():
        mine.begins.wait()
        metrics.waited("turns", time.monotonic() - mine.asked)
        # torch keeps this number for each thread; every turn sets its own before anything runs
        torch.set_num_threads(n_threads if mine.whole and not one_core else 1)
        _thread.holds = True
        try:
            yield
        finally:
            _thread.holds = False
            with _changing:
                _running.remove(mine)
                _begin()


def _place_of(turn: _Turn) -> int:
    """Where somebody who asks now comes in line: behind the last who is not overtaken by them."""
    place = len(_waiting)
    while place and _overtakes(turn, _waiting[place - 1]):
        place -= 1
    return place


def _overtakes(turn: _Turn, waiting: _Turn) -> bool:
    """Whether a turn that is asked for now comes before one that waits already."""
    if turn.of_a_job:
        return False
    if waiting.of_a_job:
        return turn.asked - waiting.asked < PATIENCE_SECONDS
    return turn.rank < waiting.rank


def _begin() -> None:
    """Let those who are first in line go on, if there is room; the caller holds `_changing`."""
    while _waiting and (not _running or _fits_beside(_waiting[0])):
        first = _waiting.popleft()
        has_company = bool(_running or _waiting) and _seats() > 1
        first.whole = first.alone or not (first.one_core or has_company)
        first.begun = time.monotonic()
        _running.append(first)
        first.begins.set()


def _fits_beside(turn: _Turn) -> bool:
    """Whether a turn may begin beside those that run."""
    shared = not turn.alone and not any(running.whole for running in _running)
    return shared and len(_running) < _seats()


def in_line() -> int:
    """How many have asked for a turn and not given it back, those that run included."""
    with _changing:
        return len(_waiting) + len(_running)


def held_seconds() -> float:
    """For how long the longest of the present turns has been held; 0 if nobody holds one."""
    with _changing:
        begun = min((running.begun for running in _running), default=None)
    return 0.0 if begun is None else time.monotonic() - begun


def each(items: Iterable[Item], *, alone: bool = False) -> Iterator[Item]:
    """Yield the items, each computed in a turn of its own; between two, others get their turns."""
    iterator = iter(items)
    while True:
        with turn(alone=alone):
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


def slices(items: Iterable[Item], *, alone: bool = False) -> Iterator[Item]:
    """Yield the items, as many of them computed in one turn as begin within `SLICE_SECONDS`.

    For steps that may take a few milliseconds: with a turn for each, they would wait most of their
    time where many visitors stand in line. They are handed on when their turn is over: an item has
    to stay as it is while the next one is computed. Those of a turn that fails are lost.
    """
    iterator, more = iter(items), True
    while more:
        done: list[Item] = []
        with turn(alone=alone):
            end, more = time.monotonic() + SLICE_SECONDS, False
            for item in iterator:
                done.append(item)
                if time.monotonic() >= end:
                    more = True
                    break
        yield from done
