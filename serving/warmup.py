"""Load the first models while the visitor reads: started once a process by the frame."""

from __future__ import annotations

import os
import threading
from functools import cache

from serving import models

_starting = threading.Lock()  # of two visitors who come first together, one starts it


def start(*modules: str) -> threading.Thread | None:
    """Load models and import `modules` in the background, once; not if ATTENTION_LAB_WARMUP=off."""
    with _starting:
        return _started(modules)


@cache
def _started(modules: tuple[str, ...]) -> threading.Thread | None:
    if os.environ.get("ATTENTION_LAB_WARMUP", "on") == "off":
        return None
    return models.warm_up(modules)
