"""How many pages run at once: a few for each core; the others wait for one of them to end.

All pages and forward passes share one Python interpreter, and a pass wants it back after each of
its operations. The more pages run at once, the longer every pass takes, and the longer all pages
wait that need one. With a hundred visitors on two cores the slowest page took 59 seconds without
this limit, and 21 with it (`python -m benchmarks.load --browsers 0 --seconds 50`).
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
_room = threading.BoundedSemaphore(PAGES_PER_CORE * cores())


@contextmanager
def room(say: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Wait until there is room for one more page, then run.

    `say` is called once by whoever has waited for `SILENT_WAIT_SECONDS`, to tell the visitor.
    Whoever has waited for `LONGEST_WAIT_SECONDS` goes on all the same: the pages that run may
    themselves be waiting, as for a large model that is being loaded.
    """
    asked = time.monotonic()
    has_room = _room.acquire(timeout=SILENT_WAIT_SECONDS)
    if not has_room:
        say()
        has_room = _room.acquire(timeout=LONGEST_WAIT_SECONDS - SILENT_WAIT_SECONDS)
    metrics.waited("pages", time.monotonic() - asked)
    try:
        yield
    finally:
        if has_room:
            _room.release()
