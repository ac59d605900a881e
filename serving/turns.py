"""One forward pass at a time in the whole process, in the order in which they were asked for.

Two passes at once on the same cores are slower than one after the other, and neither's time means
anything. Long work takes a turn for each of its steps, so that a page never waits for more than one
of them; a plain lock would let that work take it again and again while others wait.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from serving import metrics

Item = TypeVar("Item")

_order: deque[threading.Lock] = deque()  # whose turn it is, then those who wait
_changing = threading.Lock()
_begun = 0.0  # when the present turn began, on the monotonic clock


@contextmanager
def turn() -> Iterator[None]:
    """Wait for all who asked before, then hold the turn. Not reentrant."""
    mine = threading.Lock()
    mine.acquire()
    asked = time.monotonic()
    with _changing:
        _order.append(mine)
        if len(_order) == 1:
            _begin()
    mine.acquire()
    metrics.waited("turns", time.monotonic() - asked)
    try:
        yield
    finally:
        with _changing:
            _order.popleft()
            if _order:
                _begin()


def _begin() -> None:
    """Let the first in line go on; called by whoever holds `_changing`."""
    global _begun
    _begun = time.monotonic()
    _order[0].release()


def in_line() -> int:
    """How many have asked for a turn and not given it back, the one that holds it included."""
    with _changing:
        return len(_order)


def held_seconds() -> float:
    """For how long the present turn has been held; 0 if nobody holds one."""
    with _changing:
        return time.monotonic() - _begun if _order else 0.0


def each(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, each computed in a turn of its own; between two, others get their turns."""
    iterator = iter(items)
    while True:
        with turn():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item
