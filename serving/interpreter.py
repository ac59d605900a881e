"""How Python and torch's threads share the processors; set once, when a site starts."""

from __future__ import annotations

import gc
import os
import sys

from serving.limits import OBJECTS_BEFORE_COLLECTION, SWITCH_SECONDS


def prepare() -> None:
    """Set what is right for many visitors in one process; called before torch is imported."""
    # GNU OpenMP reads this when torch is first imported. With its long spins at barriers, one other
    # busy process makes generation on two cores 20 to 100 times slower; with short ones, twice.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
