"""One forward pass at a time in the whole process, in the order in which they were asked for.

Two passes at once on the same cores are slower than one after the other, and neither's time means
anything. Long work takes a turn for each of its steps, so that a page never waits for more than one
of them; a plain lock would let that work take it again and again while others wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_order: deque[threading.Lock] = deque()  # whose turn it is, then those who wait
_changing = threading.Lock()


@contextmanager
def turn() -> Iterator[None]:
    """Wait for all who asked before, then hold the turn. Not reentrant."""
    mine = threading.Lock()
    mine.acquire()
    with _changing:
        _order.append(mine)
        if len(_order) == 1:
            mine.release()
    mine.acquire()
    try:
        yield
    finally:
        with _changing:
            _order.popleft()
            if _order:
                _order[0].release()


def in_line() -> int:
    """How many have asked for a turn and not given it back, the one that holds it included."""
    with _changing:
        return len(_order)


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
