"""How many pages run at once: one for each core; the others wait until it ends.

All pages and forward passes share one Python interpreter, and a pass wants it back after each of
its operations. The more pages run at once, the longer every pass takes, and the longer all pages
wait that need one. What does not run counts for nothing: a page that waits for a model to be
loaded, for its forward pass (`serving.turns` counts those), or for another page that computes what
it needs too, lets another page run meanwhile. Parts of a page that are painted anew by themselves,
and files that are made on a click, ask for no room. `python -m benchmarks.load` measures what it is
worth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from serving import metrics
from serving.cores import cores
from serving.limits import LONGEST_WAIT_SECONDS, PAGES_PER_CORE, SILENT_WAIT_SECONDS

CROWDED = "Many people are on this site now. Your page comes in some seconds."


class Room:
    """Room for so many pages.

    A page that comes back from waiting never waits again, so there may be more pages inside than
    `n_pages`. New ones then wait until the number is below it. The order of asking is not kept:
    whoever asks just when there is room comes in before those who have to wake up first.
    """

    def __init__(self, n_pages: int) -> None:
        self._free = n_pages
        self._changed = threading.Condition()

    def enter(self, seconds: float) -> bool:
        """Come in as soon as there is room; False where there was none for so many seconds."""
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._free > 0, seconds)
            self._free -= has_room
            return has_room

    def come_back(self) -> None:
        """Come in again, at once."""
        with self._changed:
            self._free -= 1

    def leave(self) -> None:
        """Make room for somebody else."""
        with self._changed:
            self._free += 1
            self._changed.notify()


_room = Room(PAGES_PER_CORE * cores())
_inside = threading.local()  # `room`: where this thread's page is, if it is in one


@contextmanager
def room(say: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Wait until there is room for one more page, then run.

    `say` is called once by whoever has waited for `SILENT_WAIT_SECONDS`, to tell the visitor.
    Whoever has waited for `LONGEST_WAIT_SECONDS` goes on all the same: the pages that run may
    themselves be waiting, for something of which nothing is known here.
    """
    room, asked = _room, time.monotonic()
    has_room = room.enter(SILENT_WAIT_SECONDS)
    if not has_room:
        say()
        has_room = room.enter(LONGEST_WAIT_SECONDS - SILENT_WAIT_SECONDS)
    metrics.waited("pages", time.monotonic() - asked)
    _inside.room = room if has_room else None
    try:
        yield
    finally:
        _inside.room = None
        if has_room:
            room.leave()


@contextmanager
def outside() -> Iterator[None]:
    """Leave the room to another page, where this thread has one, until this is over.

    For what a page waits for. It then goes on at once.
    """
    room: Room | None = getattr(_inside, "room", None)
    if room is None:
        yield
        return
    room.leave()
    _inside.room = None
    try:
        yield
    finally:
        room.come_back()
        _inside.room = room
