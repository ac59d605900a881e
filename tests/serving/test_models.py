"""A model that is too large is refused before it is read, and is not what a page shows first."""

from pathlib import Path

import pytest
import torch

from serving import models
from serving.limits import OverLimit
from tests.helpers.bundled_models import FIRST_BERT, FIRST_GPT2
from tests.helpers.hollow_models import hollow_model


@pytest.fixture
def room_for_a_megabyte(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Models may take a megabyte; a folder of models."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    monkeypatch.setattr(models, "MODEL_BUDGET_BYTES", 1_000_000)
    return tmp_path


def test_a_model_that_is_too_large_is_refused_with_both_sizes(room_for_a_megabyte: Path):
    hollow_model(room_for_a_megabyte / "giant", 10**9)
    with pytest.raises(OverLimit, match=r"giant.*4\.00 GB.*0\.00 GB"):
        models.get("giant")


def test_a_gpu_without_room_is_named(room_for_a_megabyte: Path, monkeypatch: pytest.MonkeyPatch):
    hollow_model(room_for_a_megabyte / "small", 1_000)

    def load(_: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr("pretrained.load_by_name", load)
    with pytest.raises(OverLimit, match="GPU.*small"):
        models.get("small")


def test_a_page_shows_first_what_there_is_room_for(room_for_a_megabyte: Path):
    hollow_model(room_for_a_megabyte / "gpt2", 10_000_000)
    assert models.preferred("decoder") == "gpt2"  # nothing fits, so the sentence is about this one
    hollow_model(room_for_a_megabyte / "small", 1_000)
    assert models.preferred("decoder") == "small"
    assert models.too_large_message("small", 4_000) == ""


@pytest.mark.parametrize("name", [FIRST_GPT2, FIRST_BERT])
def test_a_model_counts_by_itself_and_so_does_that_of_transformers(name: str):
    model = models.get(name)
    stored = {weights.untyped_storage().data_ptr(): weights for weights in model.core.parameters()}
    n_bytes = sum(weights.untyped_storage().nbytes() for weights in stored.values())
    assert models.by_key.nbytes >= n_bytes > 4_000_000
    models.reference.clear()
    theirs = models.reference(model)
    assert models.reference(model) is theirs
    weights = sum(4 * parameter.numel() for parameter in theirs.parameters())
    assert weights <= models.reference.nbytes < 1.01 * weights  # and buffers
