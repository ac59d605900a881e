"""Test caches while model files change: results never mix numbers from two files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from pretrained.sources import FilesChanged
from serving import models, one_pass, runs
from serving.limits import OverLimit
from tests.helpers import changing_files as files
from tests.helpers.reference_models import TOLERANCE

Change = Callable[[Path, bytes], None]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> files.Folders:
    return files.Folders(tmp_path_factory.mktemp("folders"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a model folder and clear what is cached about it afterwards."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    yield tmp_path
    for kept in (models.by_key, models.reference, runs.run_forward, one_pass.layer_detail):
        kept.clear()


@pytest.mark.parametrize("change", [files.truncate, files.rewrite, files.replace])
@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", files.SHARD])
def test_run_uses_the_weights_it_was_recorded_with(
    file: str, change: Change, root: Path, folders: files.Folders
):
    folder = folders.copy("gpt2", file, root / "mine")
    run = runs.run("mine", files.TEXT)
    before, model = run.weights.copy(), models.get("mine")
    layer = one_pass.layer_detail(run, 1).strips["output"].copy()
    change(folder / file, folders.other("gpt2", file))

    runs.run_forward.clear()
    one_pass.layer_detail.clear()
    np.testing.assert_array_equal(run.weights, before)  # recorded again with the same model
    np.testing.assert_array_equal(one_pass.layer_detail(run, 1).strips["output"], layer)
    with pytest.raises(FilesChanged, match="mine"):
        models.reference(model)

    if files.is_usable_after(change, file):
        again = runs.run("mine", files.TEXT)
        assert again.key != run.key
        new = models.get("mine")
        torch.testing.assert_close(files.numbers(new), files.expected_numbers(folder), **TOLERANCE)
        ids, theirs = torch.tensor([again.tokens.ids]), models.reference(new)
        with torch.inference_mode():
            ours = new.core(ids, record=True)
            torch.testing.assert_close(ours.logits, theirs(ids).logits, **TOLERANCE)
        torch.testing.assert_close(again.tensors.weights[1], ours.records[1].weights[0])
    else:
        with pytest.raises(models.LOAD_ERRORS, match=f"mine|{file}"):
            runs.run("mine", files.TEXT)
    models.by_key.clear()
    runs.run_forward.clear()
    with pytest.raises(models.LOAD_ERRORS, match=f"mine|{file}"):
        _ = run.weights  # the weights it was recorded with are gone


OUT_OF_MEMORY = {
    "Python": MemoryError(),
    "torch": RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"),
    "the system": OSError(12, "Cannot allocate memory"),
    "a library": ImportError("failed to map segment: Cannot allocate memory"),
}


@pytest.mark.parametrize("is_cause", [False, True])
@pytest.mark.parametrize("loads", ["core", "reference"])
@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY)
def test_too_little_memory_to_load_a_model(
    error: Exception,
    loads: str,
    is_cause: bool,
    root: Path,
    folders: files.Folders,
    monkeypatch: pytest.MonkeyPatch,
):
    folders.copy("llama", "model.safetensors", root / "mine")

    def load(*_: object) -> None:
        if is_cause:
            raise ValueError("damaged") from error
        raise error

    def ask() -> object:
        return models.get("mine") if loads == "core" else models.reference(models.get("mine"))

    whole = "pretrained.load_by_name" if loads == "core" else "pretrained.Pretrained.load_reference"
    with monkeypatch.context() as patch:
        patch.setattr(whole, load)
        with pytest.raises(OverLimit, match="mine"):
            ask()
        patch.setattr(models, "preferred", lambda _: "mine")
        assert loads == "reference" or models.load_preferred() == ["mine"]  # the warm-up continues
    assert ask() is not None  # everything else works as well
