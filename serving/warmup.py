"""Warm-up of a process: import the core and load the default models for the first visitor."""

from __future__ import annotations

import importlib
import math
import threading
import time

from pretrained import settings
from serving import models

# Lets the first page and its scripts reach the browser before the imports occupy the interpreter.
# On two cores, Home's picture appears 0.6 s sooner.
AFTER_SECONDS = 1.0
TRY_AGAIN_SECONDS = 30.0  # after loading a model has failed

_importing = threading.Lock()
_core_requested = (
    threading.Event()
)  # set when a page needs the core, so that the warm-up starts right away
_starting = threading.Lock()
_threads: list[threading.Thread] = []  # the warm-up thread once it has started
_failed_models: list[str] | None = (
    None  # models that failed to load; None until the warm-up is done
)
_next_try = 0.0  # on the monotonic clock


def import_core() -> None:
    """Import `attention_core`; call this before importing any part of it.

    If one thread imports a package while another one imports a module in it for the first time,
    they wait for each other, and Python ends one of the imports with a deadlock error.
    """
    _core_requested.set()
    with _importing:
        importlib.import_module("attention_core")


def start(*modules: str) -> threading.Thread | None:
    """Import `modules` and load the default models in the background.

    The warm-up starts after `AFTER_SECONDS`, or as soon as a page needs the core. Only the first
    call starts a thread; later calls return it. None if ATTENTION_LAB_WARMUP=off.
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


def not_ready_reason(*modules: str) -> str | None:
    """The reason why the site isn't ready for its first visitor, or None if it is.

    Starts the warm-up like `start`, because a proxy doesn't send visitors before it's done. Models
    that failed to load are tried again on later calls. None if the warm-up is off
    (ATTENTION_LAB_WARMUP=off), because pages then load what they need.
    """
    thread = start(*modules)
    if thread is None:
        return None
    running = thread.is_alive()  # check this first: `_failed_models` is set before the thread ends
    if _failed_models is None:
        return "The default models are loading." if running else "The warm-up failed; see the log."
    lacking = [name for name in _failed_models if not models.is_loaded(name)]
    if lacking:
        _try_again()
        return f"Loading {' and '.join(lacking)} failed; see the log."
    return None


def _warm_up(*modules: str) -> None:
    _core_requested.wait(AFTER_SECONDS)
    import_core()
    for module in modules:
        importlib.import_module(module)
    _load()


def _load() -> None:
    global _failed_models, _next_try
    try:
        _failed_models = models.load_preferred()
    finally:
        _next_try = time.monotonic() + TRY_AGAIN_SECONDS


def _try_again() -> None:
    """Retry models that failed to load, in the background, at most every `TRY_AGAIN_SECONDS`.

    The GPU may have been full, or a folder may not have been copied completely.
    """
    global _next_try
    with _starting:
        if time.monotonic() < _next_try:
            return
        _next_try = math.inf  # until this retry has ended
    threading.Thread(target=_load, name="warm-up again", daemon=True).start()
