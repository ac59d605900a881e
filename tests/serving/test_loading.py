"""Which of the first models could not be loaded, and what a load leaves to the collector."""

import pytest

from serving import models


def test_the_models_that_could_not_be_loaded_are_named(monkeypatch: pytest.MonkeyPatch):
    def get(name: str) -> None:
        if name == "the encoder":
            raise OSError(name)

    monkeypatch.setattr(models, "get", get)
    monkeypatch.setattr(models, "preferred", lambda kind: f"the {kind}")
    assert models.load_preferred() == ["the encoder"]
    monkeypatch.setattr(models, "preferred", lambda kind: None)  # there are none
    assert models.load_preferred() == []
