"""Source code is read by pages of several visitors at once."""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serving import jobs
from ui.export import source_code


@pytest.fixture
def _collections_let_other_threads_run() -> Iterator[None]:
    """Python collects garbage often, and calls what gives up the interpreter for a moment."""
    threshold = gc.get_threshold()

    def yields(phase: str, info: dict[str, int]) -> None:
        os.stat(os.devnull)

    gc.callbacks.append(yields)
    gc.set_threshold(500)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(yields)


@pytest.mark.usefixtures("_collections_let_other_threads_run")
def test_threads_may_read_at_the_same_time():
    """Without turns, some of the six threads met Python's SystemError in each of three tries."""
    text = Path(jobs.__file__).read_text(encoding="utf-8")

    def read(_: int) -> set[int]:
        return {len(source_code._parsed(text).body) for _ in range(60)}

    with ThreadPoolExecutor(6) as threads:
        sizes = set[int]().union(*threads.map(read, range(6)))
    assert len(sizes) == 1
