"""What a process does once, for its first visitor: import the core, load the first models."""

from __future__ import annotations

import importlib
import math
import threading
import time

from pretrained import settings
from serving import models

# The first page and its scripts go to the browser before the imports take the interpreter: Home's
# picture comes 0.6 s sooner on two cores.
AFTER_SECONDS = 1.0
TRY_AGAIN_SECONDS = 30.0  # after models could not be loaded

_importing = threading.Lock()
_needed = threading.Event()  # a page needs the core: nobody waits any longer
_starting = threading.Lock()
_threads: list[threading.Thread] = []  # the warm-up, once it has begun
_failed: list[str] | None = None  # models that were not loaded; None before it has ended
_next_try = 0.0  # on the monotonic clock


def import_core() -> None:
    """Import the whole of `attention_core`; to be called before any part of it is imported.

    Two threads that import a package and a module inside it for the first time, both at once, wait
    for each other, and Python ends one of the two imports with a deadlock error.
    """
    _needed.set()
    with _importing:
        importlib.import_module("attention_core")


def start(*modules: str) -> threading.Thread | None:
    """Import `modules` and load the first models in the background, while the visitor reads.

    It begins after `AFTER_SECONDS`, or as soon as a page needs the core.
    Only the first call starts a thread; later ones return it. None if ATTENTION_LAB_WARMUP=off.
    """
    if not settings.WARMUP.read():
        return None
    with _starting:
        if not _threads:
            _threads.append(
                threading.Thread(target=_warm_up, args=modules, name="warm-up", daemon=True)
            )
            _threads[0].start()
        return _threads[0]


def lacking(*modules: str) -> str | None:
    """What the first visitor would wait for or miss, as a sentence; None if it is all there.

    Starts the warm-up, as `start` does: whoever asks would send no visitor before it has ended.
    What could not be loaded is tried again for whoever goes on asking.
    Without one (ATTENTION_LAB_WARMUP=off) a page loads what it needs, and nothing is lacking.
    """
    thread = start(*modules)
    if thread is None:
        return None
    running = thread.is_alive()  # read first: what it found is there once it has ended
    if _failed is None:
        return "The first models are loading." if running else "The warm-up failed; see the log."
    lacking = [name for name in _failed if not models.is_loaded(name)]
    if lacking:
        _try_again()
        return f"{' and '.join(lacking)} could not be loaded; see the log."
    return None


def _warm_up(*modules: str) -> None:
    _needed.wait(AFTER_SECONDS)
    import_core()
    for module in modules:
        importlib.import_module(module)
    _load()


def _load() -> None:
    global _failed, _next_try
    try:
        _failed = models.load_preferred()
    finally:
        _next_try = time.monotonic() + TRY_AGAIN_SECONDS


def _try_again() -> None:
    """Load once more what was not loaded, in the background, if the last try was a while ago.

    A GPU may have been full for a moment, or a folder not yet copied to its end.
    """
    global _next_try
    with _starting:
        if time.monotonic() < _next_try:
            return
        _next_try = math.inf  # until that try has ended
    threading.Thread(target=_load, name="warm-up again", daemon=True).start()
