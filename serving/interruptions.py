"""Detects whether the process was suspended during a measurement.

If a process is stopped, or frozen with its container, a clock around the work can't tell: the work
just looks slow. CPU time doesn't help either, because a step on a GPU uses almost none. So a
heartbeat thread beats twenty times a second while the work runs. It costs almost nothing, and it
only misses many beats in a row if nothing in the process ran.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

BEAT_SECONDS = 0.05
SHORTEST_SECONDS = 1.0  # a busy machine may delay a beat by a few tenths of a second


class Heartbeat:
    """Measure how long the process was suspended inside `with heartbeat:`."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        shortest_seconds: float = SHORTEST_SECONDS,
    ) -> None:
        self._clock, self._shortest = clock, shortest_seconds
        self._lock, self._over = threading.Lock(), threading.Event()
        self._last, self._stalled = clock(), 0.0

    def beat(self) -> float:
        """Record that the process is running; return the total seconds it was suspended.

        Any thread may call this. The timed thread does so around its work, because after a
        suspension it may run before the heartbeat thread.
        """
        with self._lock:
            now = self._clock()
            if now - self._last > self._shortest:
                self._stalled += now - self._last
            self._last = now
            return self._stalled

    def measure_stalls(self, items: Iterator[Item]) -> Iterator[tuple[Item, float]]:
        """Yield each item with the seconds the process was suspended while computing it."""
        while True:
            before = self.beat()
            try:
                item = next(items)
            except StopIteration:
                return
            yield item, self.beat() - before

    def __enter__(self) -> Heartbeat:
        """Start the heartbeat thread."""
        self.beat()
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the heartbeat thread."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self.beat()


def notice(seconds: float) -> str:
    """The message that visitors see instead of a result."""
    return (
        f"The server was suspended for about {seconds:.0f} s during this run, so its times aren't "
        "valid. Run it again."
    )
