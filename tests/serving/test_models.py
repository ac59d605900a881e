"""Test that oversized models are rejected before loading and aren't shown by default."""

from pathlib import Path

import pytest
import torch

from serving import models
from serving.limits import OverLimit
from tests.helpers.bundled_models import FIRST_BERT, FIRST_GPT2
from tests.helpers.hollow_models import hollow_model


@pytest.fixture
def one_megabyte_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Limit models to a megabyte, and return a folder of models."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    monkeypatch.setattr(models, "MODEL_BUDGET_BYTES", 1_000_000)
    return tmp_path


def test_oversized_model_is_rejected_with_both_sizes(one_megabyte_limit: Path):
    hollow_model(one_megabyte_limit / "giant", 10**9)
    with pytest.raises(OverLimit, match=r"giant.*4\.00 GB.*0\.00 GB"):
        models.get("giant")


def test_error_names_a_gpu_without_enough_memory(
    one_megabyte_limit: Path, monkeypatch: pytest.MonkeyPatch
):
    hollow_model(one_megabyte_limit / "small", 1_000)

    def load(_: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr("pretrained.load_by_name", load)
    with pytest.raises(OverLimit, match="GPU.*small"):
        models.get("small")


def test_default_model_fits_in_memory(one_megabyte_limit: Path):
    hollow_model(one_megabyte_limit / "gpt2", 10_000_000)
    assert models.preferred("decoder") == "gpt2"  # nothing fits, so the error is about this model
    hollow_model(one_megabyte_limit / "small", 1_000)
    assert models.preferred("decoder") == "small"
    assert models.too_large_message("small", 4_000) == ""


@pytest.mark.parametrize("name", [FIRST_GPT2, FIRST_BERT])
def test_size_of_a_model_and_its_transformers_reference(name: str):
    model = models.get(name)
    stored = {weights.untyped_storage().data_ptr(): weights for weights in model.core.parameters()}
    n_bytes = sum(weights.untyped_storage().nbytes() for weights in stored.values())
    assert models.by_key.nbytes >= n_bytes > 4_000_000
    models.reference.clear()
    theirs = models.reference(model)
    assert models.reference(model) is theirs
    weights = sum(4 * parameter.numel() for parameter in theirs.parameters())
    assert weights <= models.reference.nbytes < 1.01 * weights  # plus buffers
