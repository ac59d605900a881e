"""The code that pages show exists, so renaming a variable can't break a page."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.apptest import ROOT
from ui.export import source_code


def constants(tree: ast.Module) -> dict[str, str]:
    """The string constants of a module, including tuple assignments."""
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
    """Every `source.show(...)` and `source.show_lines(...)` with constant arguments."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("source"), "show" | "show_lines"), args):
                texts = [
                    names.get(value.id) if isinstance(value, ast.Name) else ast.literal_eval(value)
                    for value in args
                    if isinstance(value, ast.Name | ast.Constant)
                ]
                if len(texts) == len(args) and None not in texts:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", texts


SHOWN = dict(call for file in sorted((ROOT / "pages").rglob("*.py")) for call in shown_code(file))


def test_shown_code_exists():
    assert SHOWN
    for file, name, *anchors in SHOWN.values():
        for anchor in anchors or [None]:
            # A LookupError names the file and the line.
            assert source_code.read(file, name, anchor).text
