"""Coroutines in tests that share their process with a browser."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """In a thread of its own: in this one the browser of other tests keeps an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
