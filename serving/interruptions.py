"""Notices when the whole process stood still while something was timed.

A process that is stopped, or frozen with its container, can't notice it by a clock around the work:
the work just seems slow. CPU time doesn't tell either, because on a GPU a step takes none, and on a
busy machine a slow step takes little. So a thread beats twenty times a second while the work runs:
it needs next to no time, and it misses many beats in a row only if nothing in the process ran.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

BEAT_SECONDS = 0.05
SHORTEST_SECONDS = 1.0  # a busy machine delays a beat by some tenths of a second


class Heartbeat:
    """Measure how long the process stood still inside `with heartbeat:`."""

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        shortest_seconds: float = SHORTEST_SECONDS,
    ) -> None:
        self._clock, self._shortest = clock, shortest_seconds
        self._lock, self._over = threading.Lock(), threading.Event()
        self._last, self._still = clock(), 0.0

    def beat(self) -> float:
        """Record that the process is running; return the seconds it has stood still so far.

        Any thread may beat. The timed one does around its work: after a stop it may be first.
        """
        with self._lock:
            now = self._clock()
            if now - self._last > self._shortest:
                self._still += now - self._last
            self._last = now
            return self._still

    def watched(self, items: Iterator[Item]) -> Iterator[tuple[Item, float]]:
        """Each item, and the seconds that the process stood still while it was computed."""
        while True:
            before = self.beat()
            try:
                item = next(items)
            except StopIteration:
                return
            yield item, self.beat() - before

    def __enter__(self) -> Heartbeat:
        """Begin to beat."""
        self.beat()
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self.beat()


def notice(seconds: float) -> str:
    """What visitors read in place of a result."""
    return (
        f"Interrupted: the process stood still for about {seconds:.0f} s, so this run isn't a "
        "measurement."
    )
