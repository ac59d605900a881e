"""Test the import layers: one direction, no cycles, and torch only where it's used."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("attention_core", "pretrained", "serving", "ui", "pages")
PACKAGES = (*LAYERS, "web")  # next to ui and pages, on top of serving
HEAVY = {"torch", "transformers", "attention_core"}


def sources(*names: str) -> list[Path]:
    """Return the Python files of packages, or the given files."""
    results = []
    for name in names:
        path = ROOT / name
        results += [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert results
    return results


def split_page_files() -> tuple[list[Path], list[Path]]:
    """Return the pages' files, and separately their experiments, which contain tensor math."""
    files = sources("pages")
    experiments = [file for file in files if "experiment" in (file.stem, file.parent.name)]
    return [file for file in files if file not in experiments], experiments


def module_of(file: Path) -> str:
    """Return the dotted name of a file's module."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def _import_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _import_time_nodes(child)


def module_names(file: Path, *, at_import_time: bool = False) -> set[str]:
    """Return the dotted names of everything a file may import; `from a import b` gives a.b.

    With `at_import_time`, only what runs on import: nothing inside functions or
    under `if TYPE_CHECKING`.
    """
    tree = parse(file)
    names = set()
    for node in _import_time_nodes(tree) if at_import_time else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports aren't allowed"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_modules(file: Path, modules: Set[str], **options: bool) -> set[str]:
    """Return those of these modules that a file imports, or imports a name from."""
    names = module_names(file, **options)
    return {name if name in modules else name.rpartition(".")[0] for name in names} & modules


def offenders(files: list[Path], forbidden: set[str], **options: bool) -> dict[str, list[str]]:
    """Return the files that import forbidden modules, and those modules."""
    results = {}
    for file in files:
        names = {name.split(".")[0] for name in module_names(file, **options)} & forbidden
        if names:
            results[str(file.relative_to(ROOT))] = sorted(names)
    return results


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_cycles(package: str):
    """Imports inside functions and under `if TYPE_CHECKING` count too."""
    files = {module_of(file): file for file in sources(package)}
    graph = {name: imported_modules(file, files.keys()) - {name} for name, file in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_follow_the_layers(layer: str):
    above = set(LAYERS[LAYERS.index(layer) + 1 :]) | {"web", "app", "tests", "benchmarks"}
    assert offenders(sources(layer), above) == {}


@pytest.mark.parametrize(
    ("files", "forbidden"),
    [
        (("attention_core",), {"streamlit", "transformers", "altair"}),
        (("pretrained", "serving"), {"streamlit", "altair"}),
        (("web",), {"ui", "pages", "app", "tests", "benchmarks"}),
        (("benchmarks",), {"tests", "docs"}),
        (("docs",), {"tests"}),
        (("tests",), {"docs"}),
        (("app.py",), HEAVY),
    ],
)
def test_forbidden_imports(files: tuple[str, ...], forbidden: set[str]):
    assert offenders(sources(*files), forbidden) == {}


def test_tensor_math_is_only_in_experiments():
    scripts = sorted((ROOT / "pages").glob("*/*/page.py"))
    assert offenders(scripts, HEAVY) == {}
    interface = {"streamlit", "altair", "pandas", "ui", "serving"}
    assert offenders(split_page_files()[1], interface) == {}


def test_no_test_imports_a_test():
    """Code that tests share is in tests/helpers."""
    for file in sources("tests"):
        names = {name for name in module_names(file) if name.startswith("tests.")}
        assert {name.split(".")[1] for name in names} <= {"helpers", "data"}, file


def test_torch_and_experiments_are_imported_lazily():
    files = [*sources("serving", "web", "ui"), *split_page_files()[0]]
    assert offenders(files, HEAVY, at_import_time=True) == {}
    experiments = {module_of(file) for file in split_page_files()[1]}
    for file in files:
        assert not imported_modules(file, experiments, at_import_time=True), file


def test_importing_the_frame_and_ui_imports_no_torch():
    """Check indirect imports too, in a fresh interpreter: first paint can't wait for torch."""
    modules = [
        module_of(file)
        for file in (*sources("serving", "web", "ui"), *split_page_files()[0])
        if file.name not in ("page.py", "frame.py")  # scripts that draw when they're imported
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_site_loads_models_only_by_name():
    """`pretrained.load` also accepts paths, and visitor text must never become a path."""
    by_path = {"pretrained.load", "pretrained.load.load", "pretrained.load.folder_at"}
    for file in sources("app.py", "serving", "ui", "pages"):
        attributes = (node for node in ast.walk(parse(file)) if isinstance(node, ast.Attribute))
        used = {ast.unparse(node) for node in attributes}
        assert not (used | module_names(file)) & by_path, file


def test_every_page_is_registered():
    from ui.frame.sections import SECTIONS

    registered = [folder for entries in SECTIONS.values() for folder, _, _ in entries]
    folders = {path.parent.relative_to(ROOT / "pages") for path in split_page_files()[0]}
    assert sorted(registered) == sorted(map(str, folders))


def test_no_page_imports_another():
    for file in sources("pages"):
        own = ".".join(file.relative_to(ROOT).parts[:3])
        others = {name for name in module_names(file) if name.startswith("pages.")}
        assert all(f"{name}.".startswith(f"{own}.") for name in others), file
