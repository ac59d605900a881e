"""Process-wide settings for Python, torch and the system, applied when the site starts."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from serving.limits import GC_THRESHOLD, SWITCH_SECONDS


def prepare() -> None:
    """Tune this process for many visitors; call this before torch is imported."""
    # GNU OpenMP reads this when torch is imported. By default its threads spin for a long time at
    # barriers, so a single other busy process makes generation on two cores 20 to 100 times slower.
    # With short spins it's only half as fast.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GC_THRESHOLD)
    _allow_open_files()


def _allow_open_files() -> None:
    """Raise the limit on open files to the system's maximum; the default is often 1,024.

    An open page uses four: one for its connection and three for its session. So 1,024 would only be
    enough for 256 pages.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):  # not a Unix, or not allowed
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
