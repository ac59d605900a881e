"""Run the code that readers try first: scripts in the documents, notebooks, docstring examples."""

import doctest
import importlib
import json
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def scripts(file: Path) -> list[str]:
    """Return the Python code blocks of a Markdown file."""
    return re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)


README_SCRIPTS = scripts(ROOT / "README.md")
OTHER_SCRIPTS = {
    f"{file.stem}-{n}": script
    for file in sorted((ROOT / "docs").glob("*.md"))
    for n, script in enumerate(scripts(file))
}


@pytest.fixture(autouse=True)
def _temporary_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # scripts may write files


def test_first_script_matches_one_pass():
    names: dict = {}
    exec(README_SCRIPTS[0], names)
    torch.testing.assert_close(names["output"], names["whole"][:, -1:], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("bundled_weights")
def test_second_script_changes_the_logit_of_the_top_token(capsys):
    names: dict = {}
    exec(README_SCRIPTS[1], names)
    word, change = capsys.readouterr().out.split()
    assert word == "Rome"
    assert float(change) < -0.1  # the head contributed to "Rome"


@pytest.mark.usefixtures("bundled_weights")
@pytest.mark.parametrize("script", OTHER_SCRIPTS.values(), ids=OTHER_SCRIPTS)
def test_document_script_runs(script: str):
    exec(script, {})


@pytest.mark.usefixtures("bundled_weights")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path):
    names: dict = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # stored outputs would become outdated
            exec("".join(cell["source"]), names)


@pytest.mark.usefixtures("bundled_weights")
@pytest.mark.parametrize(
    "module",
    [
        "attention_core.attention",
        "attention_core.costs.formulas",
        "attention_core.model.config",
        "attention_core.model.pass_context",
        "attention_core.model.transformer",
        "attention_core.sampling",
        "pretrained.export",
        "pretrained.load",
    ],
)
def test_docstring_examples(module: str):
    result = doctest.testmod(importlib.import_module(module), extraglobs={"torch": torch})
    assert (result.failed, result.attempted > 0) == (0, True)
