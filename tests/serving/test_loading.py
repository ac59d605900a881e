"""Which of the first models could not be loaded, and what a load leaves to the collector."""

import gc
import weakref

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


def test_what_a_load_keeps_from_the_garbage_collector_is_looked_at_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    class Knot:
        """It holds itself."""

    def load() -> None:
        with models._loading("a model", "model loaded"):
            pass

    knot = Knot()
    knot.self = knot  # type: ignore[attr-defined]
    load()
    alive = weakref.ref(knot)
    del knot
    gc.collect()
    assert alive() is not None
    load()
    assert alive() is None
