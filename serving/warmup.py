"""Load the first models while the visitor reads: started once a process by the frame."""

from __future__ import annotations

import os
import threading
from functools import cache

from serving import models


@cache
def start() -> threading.Thread | None:
    """Start the background load, once. `ATTENTION_LAB_WARMUP=off` leaves it out."""
    if os.environ.get("ATTENTION_LAB_WARMUP", "on") == "off":
        return None
    return models.warm_up()
