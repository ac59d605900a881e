"""What a process of the site sets for itself once, when it starts.

How Python's and torch's threads share the processors, and how many connections may be open.
"""

from __future__ import annotations

import contextlib
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
    _allow_open_files()


def _allow_open_files() -> None:
    """As many open files as the system lets this process have; often it begins with 1,024.

    An open page takes four, its connection and three of its session, so 1,024 end at 256 pages.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):  # not a Unix, or not allowed
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
