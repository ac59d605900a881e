"""Test displayed source code: found by anchors, and read by several visitors at the same time."""

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
    """Make Python collect garbage often, and release the GIL briefly each time."""
    threshold = gc.get_threshold()

    def release_interpreter(phase: str, info: dict[str, int]) -> None:
        os.stat(os.devnull)

    gc.callbacks.append(release_interpreter)
    gc.set_threshold(500)
    yield
    gc.set_threshold(*threshold)
    gc.callbacks.remove(release_interpreter)


@pytest.mark.usefixtures("_collections_let_other_threads_run")
def test_threads_may_read_concurrently():
    """Without a lock, some of the six threads hit Python's SystemError in each of three tries."""
    text = Path(jobs.__file__).read_text(encoding="utf-8")

    def read(_: int) -> set[int]:
        return {len(source_code._parsed(text).body) for _ in range(60)}

    with ThreadPoolExecutor(6) as threads:
        sizes = set[int]().union(*threads.map(read, range(6)))
    assert len(sizes) == 1


CODE = """\
def scale(x):
    y = x * 2  # [twice]
    # [sum]
    total = sum(
        y,
    )
    z = y - 1  # [less] y - 1, (B, T)
    if z:  # [twins]
        total += z  # [twins]
    # [nowhere]

    return total  # (B, T)


class Layer:
    # [kept] a comment
    size = 1  # [twice]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(source_code, "_ROOT", tmp_path)
    file = tmp_path / "code.py"
    file.write_text(CODE, encoding="utf-8")
    return str(file)  # absolute, because results are cached by path


@pytest.mark.parametrize(
    ("anchor", "first", "last", "text"),
    [
        ("twice", 2, 2, "y = x * 2"),
        ("sum", 4, 6, "total = sum(\n    y,\n)"),
        ("less", 7, 7, "z = y - 1  # y - 1, (B, T)"),
    ],
)
def test_anchor_finds_its_statement(file: str, anchor: str, first: int, last: int, text: str):
    assert source_code.read(file, "scale", anchor) == source_code.SourceExcerpt(first, last, text)


@pytest.mark.parametrize(
    ("anchor", "message"),
    [("missing", "0 lines have"), ("twins", "2 lines have"), ("nowhere", "not at a statement")],
)
def test_anchor_must_name_one_statement(file: str, anchor: str, message: str):
    with pytest.raises(LookupError, match=message):
        source_code.read(file, "scale", anchor)


def test_definition_is_displayed_without_anchors(file: str):
    displayed = source_code.read(file, "Layer")
    assert displayed == source_code.SourceExcerpt(
        15, 17, "class Layer:\n    # a comment\n    size = 1"
    )
    assert "[" not in source_code.read(file, "scale").text
