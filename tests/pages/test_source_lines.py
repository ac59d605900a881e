"""The lines of code that pages show are there: renaming a variable must not break a page."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.apptest import ROOT
from ui.export import source_code


def constants(tree: ast.Module) -> dict[str, str]:
    """The texts that a module gives names to, also several in one assignment."""
    values: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, texts = node.targets[0], node.value
            pairs = (
                zip(targets.elts, texts.elts, strict=True)
                if isinstance(targets, ast.Tuple) and isinstance(texts, ast.Tuple)
                else [(targets, texts)]
            )
            for name, text in pairs:
                if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
                    values[name.id] = str(text.value)
    return values


def shown_code(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Every `source.show(...)` and `source.step(...)` of a file whose arguments stand there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("source"), "show" | "step"), args):
                texts = [
                    names.get(value.id) if isinstance(value, ast.Name) else ast.literal_eval(value)
                    for value in args
                    if isinstance(value, ast.Name | ast.Constant)
                ]
                if len(texts) == len(args) and None not in texts:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", texts


SHOWN = dict(call for file in sorted((ROOT / "pages").rglob("*.py")) for call in shown_code(file))


def test_the_scan_finds_the_calls():
    assert len(SHOWN) > 40


@pytest.mark.parametrize("texts", SHOWN.values(), ids=SHOWN.keys())
def test_the_lines_are_there(texts: list[str]):
    file, name, *anchors = texts
    for anchor in anchors or [None]:
        assert source_code.read(file, name, anchor).text
