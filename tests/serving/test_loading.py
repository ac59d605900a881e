"""Test which of the default models couldn't be loaded."""

import pytest

from serving import models


def test_models_that_could_not_be_loaded_are_named(monkeypatch: pytest.MonkeyPatch):
    def get(name: str) -> None:
        if name == "the encoder":
            raise OSError(name)

    monkeypatch.setattr(models, "get", get)
    monkeypatch.setattr(models, "preferred", lambda kind: f"the {kind}")
    assert models.load_preferred() == ["the encoder"]
    monkeypatch.setattr(models, "preferred", lambda kind: None)  # no preferred model is available
    assert models.load_preferred() == []
