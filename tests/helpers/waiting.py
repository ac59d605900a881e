"""Wait for a condition that another process brings about."""

import threading
from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], *, seconds: float = 120.0, every: float = 0.1
) -> None:
    """Poll until the condition is true; fail after the timeout (in seconds)."""
    for _ in range(round(seconds / every)):
        if condition():
            return
        threading.Event().wait(every)
    raise AssertionError(f"it did not come about in {seconds:g} s")
