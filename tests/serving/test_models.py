"""A model that is too large is refused before it is read, and is not what a page shows first."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from attention_core.speed import products
from serving import cache, first_models, models
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
    hollow_model(room_for_a_megabyte / "gpt2-medium", 10_000_000)
    with pytest.raises(OverLimit, match=r"^giant takes 4\.00 GB .* a model may take 0\.00 GB"):
        models.get("giant")
    with pytest.raises(OverLimit, match=r"^GPT-2 medium \(355M\) takes 0\.04 GB of memory"):
        models.get("gpt2-medium")


def test_a_gpu_without_room_is_named(room_for_a_megabyte: Path, monkeypatch: pytest.MonkeyPatch):
    hollow_model(room_for_a_megabyte / "small", 1_000)

    def load(_: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr("pretrained.load_by_name", load)
    with pytest.raises(OverLimit, match="GPU has no room for small beside .* smaller model"):
        models.get("small")


def test_a_page_shows_first_what_there_is_room_for(room_for_a_megabyte: Path):
    hollow_model(room_for_a_megabyte / "gpt2", 10_000_000)
    assert models.preferred("decoder") == "gpt2"  # nothing fits, so the sentence is about this one
    hollow_model(room_for_a_megabyte / "small", 1_000)
    assert models.preferred("decoder") == "small"
    assert models.too_large_message("small", 4_000) == ""


def test_whoever_runs_the_site_may_say_which_comes_first(
    room_for_a_megabyte: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("gpt2", "small", "other"):
        hollow_model(room_for_a_megabyte / name, 1_000)
    hollow_model(room_for_a_megabyte / "giant", 10_000_000)
    assert models.preferred("decoder") == models.preferred("gpt2") == "gpt2"
    encoder = models.preferred("encoder")
    monkeypatch.setenv(first_models.VARIABLE, "giant, not-here,small ,other")
    assert models.preferred("decoder") == models.preferred("gpt2") == "small"
    assert models.preferred("encoder") == encoder  # none of those is one
    monkeypatch.setenv(first_models.VARIABLE, "")
    assert models.preferred("decoder") == "gpt2"


@pytest.mark.parametrize("name", [FIRST_GPT2, FIRST_BERT])
def test_a_model_counts_by_itself_and_so_does_that_of_transformers(name: str):
    model = models.get(name)
    stored = {weights.untyped_storage().data_ptr(): weights for weights in model.core.parameters()}
    n_bytes = sum(weights.untyped_storage().nbytes() for weights in stored.values())
    assert models.loaded.nbytes >= n_bytes > 4_000_000
    models.reference.clear()
    theirs = models.reference(model)
    assert models.reference(model) is theirs
    weights = sum(4 * parameter.numel() for parameter in theirs.parameters())
    assert weights <= models.reference.nbytes < 1.01 * weights  # and buffers


def test_the_largest_model_fits_the_memory():
    assert models.MODEL_BUDGET_BYTES <= cache.MODELS.max_bytes < cache.TOTAL_BYTES


def test_a_cpu_that_multiplies_faster_another_way_gets_those_layers(
    monkeypatch: pytest.MonkeyPatch,
):
    ids = torch.tensor([[7, 42, 1009]])
    plain = models.get(FIRST_GPT2).core(ids).logits
    monkeypatch.setattr(products, "PLAIN_IS_FASTEST", False)
    models.loaded.clear()
    core = models.get(FIRST_GPT2).core
    models.loaded.clear()
    assert any(isinstance(module, products.FastLinear) for module in core.modules())
    assert_close(core(ids).logits, plain, atol=1e-5, rtol=0)
