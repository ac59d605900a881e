"""`python -m pretrained`: what it lists, and what it finds when it checks a model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pretrained
from pretrained import comparison
from pretrained.__main__ import main
from tests.helpers import tiny_models
from tests.helpers.bundled_models import FIRST_GPT2


def test_list_shows_what_is_here(
    models: Path, hub_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrained.save(tiny_models.build("llama"), models / "mine")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    title, *rows = [line.split() for line in lines[:-2]]
    assert title == ["NAME", "TITLE", "KIND", "LAYERS", "HEADS", "SIZE"]
    assert ["gpt2-novels", "GPT-2", "novels", "gpt2", "decoder", "6", "8", "28", "MB"] in rows
    assert ["mine", "mine", "llama", "decoder", "2", "6", "0", "MB"] in rows
    names = [entry.spec.name for entry in pretrained.catalog() if entry.state == "ready"]
    assert [row[0] for row in rows] == names
    assert lines[-1].startswith("Can be downloaded: gpt2, gpt2-medium")


def test_check_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", FIRST_GPT2]) == 0
    out = capsys.readouterr().out
    assert "6 layers of 8 query heads" in out
    assert "GPT2LMHeadModel in a pass of 64 tokens" in out
    assert out.endswith("up to rounding.\n")


@pytest.mark.parametrize("name", tiny_models.TINY)
def test_check_by_path(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretrained.save(tiny_models.build(name), tmp_path)
    assert main(["check", str(tmp_path)]) == 0
    n_tokens = tiny_models.TINY[name].context_length
    assert f"in a pass of {n_tokens} tokens" in capsys.readouterr().out


def test_check_finds_a_wrong_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrained.save(tiny_models.build("gpt2"), tmp_path / "mine")
    pretrained.save(tiny_models.build("gpt2", seed=1), tmp_path / "other")
    other = pretrained.load(tmp_path / "other", device="cpu").load_reference()
    monkeypatch.setattr(comparison, "load_reference", lambda _: other)
    assert main(["check", str(tmp_path / "mine")]) == 1
    assert "differ by more than rounding" in capsys.readouterr().err


def test_check_names_every_obstacle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pretrained.save(tiny_models.build("gpt2"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config |= {"activation_function": "relu", "add_cross_attention": True}
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["check", str(folder)]) == 1
    err = capsys.readouterr().err
    assert "activation_function='relu'" in err
    assert "add_cross_attention=True" in err


@pytest.mark.parametrize("model", ["no-such-model", "./nowhere", "gpt2"])
def test_check_of_what_is_not_here(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", model]) == 1
    assert "on this machine" in capsys.readouterr().err


def test_it_is_a_program(root: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pretrained", *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)

    assert "gpt2-novels" in run("list").stdout
    assert run().returncode == 2
    for command in ("list", "check", "download"):
        assert command in run("--help").stdout
