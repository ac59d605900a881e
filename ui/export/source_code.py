"""Pieces of this project's own source code, read from the file itself.

The file is parsed, not imported: showing code must not load torch.
"""

from __future__ import annotations

import ast
import textwrap
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_parsing = threading.Lock()


@dataclass(frozen=True)
class Source:
    """A piece of a file: its path in the project, its first line's number, its text."""

    file: str
    first_line: int
    text: str

    @property
    def last_line(self) -> int:
        """The number of the last line."""
        return self.first_line + self.text.count("\n")


@cache
def read(file: str, name: str, containing: str | None = None) -> Source:
    """The definition of `name` ("attend", "KVCache.update") in a file of the project.

    With `containing`, only the statement of it that contains this text, its indentation removed.
    Raises: LookupError if the file does not define it, or not exactly one statement contains it.
    """
    text = (_ROOT / file).read_text(encoding="utf-8")
    try:
        node = _definition(_parsed(text), name.split("."))
    except LookupError:
        raise LookupError(f"{file} does not define {name}") from None
    lines = text.splitlines()
    if containing is not None:
        first, last = _statement(node, lines, containing)
        return Source(file, first, textwrap.dedent("\n".join(lines[first - 1 : last])))
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Source(file, first, "\n".join(lines[first - 1 : node.end_lineno]))


def _parsed(text: str) -> ast.Module:
    """The tree of a file's text, one at a time.

    Before Python 3.13 all threads share the count of how deep a tree is, and two that parse at once
    may end with "SystemError: AST constructor recursion depth mismatch".
    Source: https://github.com/python/cpython/issues/106905.
    """
    with _parsing:
        return ast.parse(text)


def _statement(node: ast.AST, lines: list[str], containing: str) -> tuple[int, int]:
    """First and last line of the one statement that contains a text; a docstring is none."""
    spans = {
        (part.lineno, part.end_lineno or part.lineno)
        for part in ast.walk(node)
        if isinstance(part, ast.stmt)
        and not hasattr(part, "body")
        and not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        and containing in "\n".join(lines[part.lineno - 1 : part.end_lineno])
    }
    if len(spans) != 1:
        raise LookupError(f"{len(spans)} statements contain {containing!r}, not 1")
    return spans.pop()


def _definition(scope: ast.AST, path: list[str]) -> ast.FunctionDef | ast.ClassDef:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == path[0]:
            return node if len(path) == 1 else _definition(node, path[1:])
    raise LookupError(path[0])
