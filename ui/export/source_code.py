"""Excerpts from this project's source code, read from its files.

Files are parsed, not imported, so that showing code doesn't load torch. An anchor, as in
`x = q @ k.T  # [scores]`, names a statement so that pages can find it. It's at the end of the
statement's line or on the line above, and isn't shown.
"""

from __future__ import annotations

import ast
import re
import textwrap
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ANCHOR = re.compile(r"(?P<space> *)# \[(?P<name>[a-z][a-z ]*)\](?P<rest> .*)?$")
_parsing = threading.Lock()


@dataclass(frozen=True)
class SourceExcerpt:
    """An excerpt from a file: its first and last line numbers, and its text without anchors."""

    first_line: int
    last_line: int
    text: str


@cache
def read(file: str, name: str, anchor: str | None = None) -> SourceExcerpt:
    """Read the definition of `name` ("attend", "KVCache.update") from a file of the project.

    With `anchor`, only the statement with this anchor, without indentation.
    Raises: LookupError if the name isn't defined, or unless exactly one statement has the anchor.
    """
    text = (_ROOT / file).read_text(encoding="utf-8")
    try:
        node = _definition(_parsed(text), name.split("."))
    except LookupError:
        raise LookupError(f"{file} does not define {name}") from None
    lines = text.splitlines()
    if anchor is None:
        return _excerpt(lines, _line_range(node))
    statement = _excerpt(lines, _statement(node, lines, anchor))
    return replace(statement, text=textwrap.dedent(statement.text))


def _parsed(text: str) -> ast.Module:
    """Parse a file's text, one file at a time.

    Before Python 3.13 all threads share the recursion depth counter of the parser, and concurrent
    calls may raise "SystemError: AST constructor recursion depth mismatch".
    Source: https://github.com/python/cpython/issues/106905.
    """
    with _parsing:
        return ast.parse(text)


def _definition(scope: ast.AST, path: list[str]) -> ast.FunctionDef | ast.ClassDef:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == path[0]:
            return node if len(path) == 1 else _definition(node, path[1:])
    raise LookupError(path[0])


def _statement(node: ast.stmt, lines: list[str], anchor: str) -> range:
    """The lines of the innermost statement with this anchor."""
    anchored = [
        number
        for number in _line_range(node)
        if (result := _ANCHOR.search(lines[number - 1])) and result["name"] == anchor
    ]
    if len(anchored) != 1:
        raise LookupError(f"{len(anchored)} lines have the anchor {anchor!r}, not 1")
    number = anchored[0]
    if lines[number - 1].lstrip().startswith("#"):
        number += 1  # the anchor is on the line above the statement
    statements = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
    spans = [_line_range(part) for part in statements if part is not node]
    around = [span for span in spans if number in span]
    if not around:
        raise LookupError(f"the anchor {anchor!r} is not at a statement")
    return min(around, key=len)


def _line_range(node: ast.stmt) -> range:
    """The line numbers of a statement, including its decorators."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return range(first, (node.end_lineno or node.lineno) + 1)


def _excerpt(lines: list[str], numbers: range) -> SourceExcerpt:
    """These lines of a file without anchors; lines with nothing but an anchor are removed."""
    text = []
    for number in numbers:
        line = lines[number - 1]
        shown = _ANCHOR.sub(_comment_text, line)
        if shown or not line:
            text.append(shown)
    return SourceExcerpt(numbers[0], numbers[-1], "\n".join(text))


def _comment_text(anchor: re.Match[str]) -> str:
    """The comment without its anchor; empty if nothing is left."""
    return f"{anchor['space']}#{anchor['rest']}" if anchor["rest"] else ""
