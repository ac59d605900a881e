"""Show the source code that computes what a page shows."""

from __future__ import annotations

from ui.export import source_code
from ui.widgets import code_block

MAX_PATH_CHARACTERS = 40  # of the path above a code excerpt


def show(file: str, name: str) -> None:
    """Show the source of a function or class with a copy button, its file and line numbers."""
    source = source_code.read(file, name)
    _code(file, source.first_line, source.last_line, source.text)


def show_lines(file: str, name: str, *anchors: str) -> None:
    """Show the statements of a function with these anchors (`# [scores]`)."""
    sources = [source_code.read(file, name, anchor) for anchor in anchors]
    text = "\n".join(source.text for source in sources)
    first, last = min(s.first_line for s in sources), max(s.last_line for s in sources)
    _code(file, first, last, text)


def _code(file: str, first: int, last: int, text: str) -> None:
    """Show code with its location as a comment. It's a single element, so pages repaint quickly."""
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    code_block.python(f"# {_short(file)}, {lines}\n{text}")


def _short(file: str) -> str:
    """The path, shortened at the front if it's long, because a narrow column would cut it off."""
    folder, _, name = file.rpartition("/")
    return file if len(file) <= MAX_PATH_CHARACTERS else f"…/{folder.rpartition('/')[2]}/{name}"
