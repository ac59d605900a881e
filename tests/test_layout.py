"""The house rules that no single file can keep: who imports whom, where a page is, how long."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("attention_core", "pretrained", "serving", "ui", "pages")
PACKAGES = (*LAYERS, "web")  # which stands next to ui and pages, on top of serving


def sources(*names: str) -> list[Path]:
    """The Python files of packages, or the files themselves."""
    found = []
    for name in names:
        path = ROOT / name
        found += [path] if path.is_file() else sorted(path.rglob("*.py"))
    return found


def parts_of_pages() -> tuple[list[Path], list[Path]]:
    """The files of the pages, and apart from them their experiments, which are tensor math."""
    files = sources("pages")
    experiments = [file for file in files if "experiment" in (file.stem, file.parent.name)]
    return [file for file in files if file not in experiments], experiments


@functools.cache
def statements(code: str) -> list[ast.Import | ast.ImportFrom]:
    """All imports of a piece of code, which many of the tests look at."""
    nodes = ast.walk(ast.parse(code))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def module_names(file: Path) -> set[str]:
    """The dotted names of all modules a file may import; `from a import b` gives a and a.b."""
    names = set()
    for node in statements(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def imports(file: Path, *, at_import_time: bool = False) -> set[str]:
    """The top-level names of all modules a file imports.

    With `at_import_time`, only what runs when the file is imported: nothing inside a function, and
    nothing under `if TYPE_CHECKING`.
    """
    code = file.read_text(encoding="utf-8")
    nodes = _import_time_nodes(ast.parse(code, str(file))) if at_import_time else statements(code)
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import hides where a name comes from"
            names.add((node.module or "").split(".")[0])
    return names


def _import_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from _import_time_nodes(other)
            continue
        yield child
        yield from _import_time_nodes(child)


def offenders(files: list[Path], forbidden: set[str], **options: bool) -> dict[str, list[str]]:
    """The files that import something forbidden, and what."""
    found = {str(file.relative_to(ROOT)): imports(file, **options) & forbidden for file in files}
    return {name: sorted(names) for name, names in found.items() if names}


def import_circle(root: Path, packages: tuple[str, ...]) -> list[str]:
    """Modules of these packages that import each other in a circle, first and last the same.

    Every import counts: those inside functions and those under `if TYPE_CHECKING` too. A name that
    a package's `__init__.py` passes on counts as an import of the package.
    """
    files = {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for package in packages
        for file in (root / package).rglob("*.py")
    }
    imported = {}
    for module, file in files.items():
        names = {
            name if name in files else name.rpartition(".")[0] for name in module_names(file)
        } | (module_names(file) & files.keys())
        imported[module] = (names & files.keys()) - {module}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_import_scan_sees_what_it_should(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import a.b\nelse:\n    import c\n"
        "try:\n    import d\nexcept ImportError:\n    pass\n"
        "class E:\n    import f\n    def g(self):\n        from h.i import j\n"
    )
    assert imports(file) == {"typing", "a", "c", "d", "f", "h"}
    assert imports(file, at_import_time=True) == {"typing", "c", "d", "f"}


def test_circle_scan_sees_what_it_should(tmp_path):
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").write_text("from sample.first import one\n")
    (package / "first.py").write_text("def one():\n    from sample import second\n")
    (package / "second.py").write_text("import math\n\nimport sample.third\n")
    (package / "third.py").write_text("from collections import deque\n")
    assert import_circle(tmp_path, ("sample",)) == []
    circles = {
        "def later():\n    from sample.first import one\n": {"first", "second", "third"},
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sample.second\n": {
            "second",
            "third",
        },
        "from sample import one\n": {"", "first", "second", "third"},
    }
    for code, modules in circles.items():
        (package / "third.py").write_text(code)
        names = {f"sample.{module}".rstrip(".") for module in modules}
        assert set(import_circle(tmp_path, ("sample",))) == names


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_circles(package):
    assert import_circle(ROOT, (package,)) == []


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_go_one_way(layer):
    files = sources(layer)
    assert files, f"{layer}/ holds no Python files"
    above = set(LAYERS[LAYERS.index(layer) + 1 :]) | {"web", "app", "tests", "benchmarks"}
    assert offenders(files, above) == {}


def test_web_imports_nothing_above_serving():
    """The ASGI side knows of Streamlit only the format of its messages."""
    files = sources("web")
    assert files
    assert offenders(files, {"ui", "pages", "app", "tests", "benchmarks"}) == {}
    streamlit = {name for file in files for name in module_names(file) if "streamlit" in name}
    assert streamlit == {"streamlit.proto.BackMsg_pb2.BackMsg"}


def test_no_test_imports_a_test():
    """What tests share lies in tests/helpers; benchmarks lie below the tests."""
    allowed = ("tests", "tests.helpers", "tests.data")
    found = {}
    for file in sources("tests"):
        names = {name for name in module_names(file) if name.split(".")[0] == "tests"}
        wrong = {name for name in names if name not in allowed and name.split(".")[1] != "helpers"}
        if wrong:
            found[str(file.relative_to(ROOT))] = sorted(wrong)
    assert found == {}
    assert offenders(sources("benchmarks"), {"tests", "docs"}) == {}
    assert offenders(sources("docs"), {"tests"}) == {}
    assert offenders(sources("tests"), {"docs"}) == {}


def test_core_knows_no_user_interface_and_no_pretrained_models():
    assert offenders(sources("attention_core"), {"streamlit", "transformers", "altair"}) == {}


def test_pretrained_knows_no_user_interface():
    assert offenders(sources("pretrained"), {"streamlit", "altair"}) == {}


def test_serving_knows_no_user_interface():
    assert offenders(sources("serving"), {"streamlit", "altair"}) == {}


def test_serving_writes_no_markup():
    """What is shown is written in `ui` and `pages`."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sources("serving")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and re.search(r"<(svg|div|p)\b|</\w+>", str(node.value))
    ]
    assert found == []


def test_pages_do_no_tensor_maths_and_load_no_models():
    scripts = sorted((ROOT / "pages").glob("*/*/page.py"))
    forbidden = {"torch", "transformers", "attention_core"}
    assert scripts
    assert offenders([*scripts, ROOT / "app.py"], forbidden) == {}


@pytest.mark.parametrize("package", ["serving", "web", "ui", "pages"])
def test_torch_and_transformers_are_imported_only_when_they_are_used(package):
    forbidden = {"torch", "transformers", "attention_core"}
    files = parts_of_pages()[0] if package == "pages" else sources(package)
    assert offenders(files, forbidden, at_import_time=True) == {}


def test_experiments_are_tensor_math_alone():
    experiments = parts_of_pages()[1]
    assert experiments
    assert offenders(experiments, {"streamlit", "altair", "pandas", "ui", "serving"}) == {}


def test_no_experiment_is_imported_before_it_is_used():
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in parts_of_pages()[1]}
    found = {}
    for file in parts_of_pages()[0]:
        nodes = _import_time_nodes(ast.parse(file.read_text(encoding="utf-8"), str(file)))
        early = {
            name
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for name in (node.module or "", *(f"{node.module}.{a.name}" for a in node.names))
        }
        if early & names:
            found[str(file.relative_to(ROOT))] = sorted(early & names)
    assert found == {}


def test_importing_the_frame_and_ui_imports_no_torch():
    """The first paint must not wait for torch: seen in a fresh interpreter, indirect ones too."""
    modules = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in (*sources("serving", "web", "ui"), *parts_of_pages()[0])
        if file.name not in ("page.py", "frame.py")  # scripts, which draw when they are imported
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_the_site_loads_models_by_name_alone():
    """`pretrained.load` takes paths too, and a visitor's text must never become one."""
    found = [
        str(file.relative_to(ROOT))
        for file in sources("app.py", "serving", "ui", "pages")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and ast.unparse(node) == "pretrained.load")
        or (isinstance(node, ast.ImportFrom) and node.module in ("pretrained", "pretrained.load"))
        and {alias.name for alias in node.names} & {"load", "folder_at"}
    ]
    assert found == []


def test_a_page_is_a_folder_of_a_section():
    """Streamlit would run a file directly in `pages/` without the frame."""
    assert [path.name for path in (ROOT / "pages").iterdir() if path.is_file()] == []
    scripts = {path.parent for path in (ROOT / "pages").rglob("page.py")}
    assert {path.parent for path in parts_of_pages()[0]} == scripts
    assert {len(path.relative_to(ROOT).parts) for path in scripts} == {3}


def test_every_page_is_registered():
    from ui.frame.sections import SECTIONS

    registered = [folder for entries in SECTIONS.values() for folder, _, _ in entries]
    folders = {path.parent.relative_to(ROOT / "pages") for path in parts_of_pages()[0]}
    assert sorted(registered) == sorted(map(str, folders))


def test_no_page_imports_another():
    found = {}
    for file in sources("pages"):
        own = ".".join(file.relative_to(ROOT).parts[:3])
        others = {
            name
            for name in module_names(file)
            if name.startswith("pages") and not (name == own or name.startswith(f"{own}."))
        }
        if others:
            found[str(file.relative_to(ROOT))] = sorted(others)
    assert found == {}


# Vega-Lite dictionaries are for what is repainted while something runs, with other numbers every
# time: building an Altair chart and checking it against its schema would cost the server more than
# ten times as much. Everything else is an Altair chart that `ui.charts.show` themes and keeps.
LIVE_CHARTS = {
    "pages/compare/ablate/live_grid.py": "cells appear while the heads are ranked",
    "pages/generate/generate/live_chart.py": "the times of a job, four times a second",
    "pages/kv_cache/timing/live_chart.py": "the steps of a run while it is timed",
    "pages/kv_cache/variants/live_chart.py": "the times of all forms while they are measured",
    "pages/learn/watch_heads_form/live_chart.py": "losses and scores while a model learns",
}


def vega_lite(file: Path) -> list[int]:
    """Lines that draw a chart past `ui.charts.show`, or write one as a Vega-Lite dictionary."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file)))
    return sorted(node.lineno for node in nodes if _draws(node) or _describes(node))


def _draws(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("vega_lite_chart", "altair_chart")
    )


def _describes(node: ast.AST) -> TypeGuard[ast.Dict | ast.Call]:
    """A dictionary with an encoding, or with a mark that is named or described in it."""
    parts: dict[object, ast.expr] = {}
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        parts = dict(zip(keys, node.values, strict=True))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        parts = {keyword.arg: keyword.value for keyword in node.keywords}
    return "encoding" in parts or isinstance(parts.get("mark"), ast.Constant | ast.Dict)


def test_vega_lite_scan_sees_what_it_should(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text(
        "import streamlit as st\n"
        "chart = {'data': {}, 'mark': 'bar'}\n"
        "layer = [{'encoding': {}}]\n"
        "other = dict(mark='bar')\n"
        "st.vega_lite_chart(chart, key='a')\n"
        "st.columns(2)[0].altair_chart(chart)\n"
        "with_more = {**chart, 'encoding': {}}\n"
        "layer = {'mark': {'type': 'line'}}\n"
        "fine = {'marks': 1, 'encodings': 2, 'mark': [0, 1]}\n"
        "alt.Chart(table).mark_bar().encode(x='a:Q', y=dict(title='t'))\n"
    )
    assert vega_lite(file) == [2, 3, 4, 5, 6, 7, 8]


def test_charts_are_altair_except_live_ones():
    drawn = {str(file.relative_to(ROOT)): vega_lite(file) for file in sources("ui", "pages")}
    places = {name for name, lines in drawn.items() if lines}
    assert places == {"ui/charts/show.py", *LIVE_CHARTS}


def test_pages_end_early_so_that_the_frame_goes_on():
    stopped = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sources("ui", "pages")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "st.stop"
    ]
    assert stopped == []  # `messages.end_page` leaves the links below the page where they are
