"""How many threads torch's operations take, for one thread of the site alone.

Many small operations gain nothing from a second core, and on a busy machine they lose: at the end
of each, one thread waits in a loop for the other. Training a very small model then took ten times
the processor time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def computing_alone() -> Iterator[None]:
    """Inside, torch's operations of the calling thread run on this thread alone.

    `torch.set_num_threads` counts for the thread that calls it, and for all threads that use torch
    for the first time later. So another thread sets for these what was there before. The calling
    thread may be a worker that does other work next: it has its threads back at the end.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    others = threading.Thread(target=torch.set_num_threads, args=(before,))
    others.start()
    others.join()
    try:
        yield
    finally:
        torch.set_num_threads(before)
