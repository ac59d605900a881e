"""The commands `python -m pretrained list` and `check`."""

import json
from pathlib import Path

import pytest

import pretrained
from pretrained import comparison
from pretrained.__main__ import main
from tests.helpers import tiny_models


def test_list_shows_available_models(
    models: Path, hub_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrained.save(tiny_models.build("llama"), models / "mine")
    assert main(["list"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    names = [entry.spec.name for entry in pretrained.catalog() if entry.state == "ready"]
    assert [row.split()[0] for row in rows[: len(names)]] == names


@pytest.mark.parametrize("name", tiny_models.TINY)
def test_check_by_path(name: str, tmp_path: Path) -> None:
    pretrained.save(tiny_models.build(name), tmp_path)
    assert main(["check", str(tmp_path)]) == 0


def test_check_detects_wrong_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrained.save(tiny_models.build("gpt2"), tmp_path / "mine")
    pretrained.save(tiny_models.build("gpt2", seed=1), tmp_path / "other")
    other = pretrained.load(tmp_path / "other", device="cpu").load_reference()
    monkeypatch.setattr(comparison, "load_reference", lambda _: other)
    assert main(["check", str(tmp_path / "mine")]) == 1


def test_check_lists_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pretrained.save(tiny_models.build("gpt2"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config |= {"activation_function": "relu", "add_cross_attention": True}
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["check", str(folder)]) == 1
    err = capsys.readouterr().err
    assert "activation_function='relu'" in err
    assert "add_cross_attention=True" in err


@pytest.mark.parametrize("model", ["no-such-model", "./nowhere", "gpt2"])
def test_check_of_a_missing_model(model: str) -> None:
    assert main(["check", model]) == 1
