"""Loading the core, the tokenizer, and the reference, and errors when loading fails."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import pretrained
from pretrained.untrained import untrained
from tests.helpers.bundled_models import ENCODER


@pytest.fixture(scope="module")
def minilm() -> pretrained.Pretrained:
    return pretrained.load(ENCODER, device="cpu")


def copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def test_reference_is_loaded_once(minilm: pretrained.Pretrained) -> None:
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(minilm.reference)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model in results}) == 1
    assert minilm.reference.config._attn_implementation == "eager"
    assert minilm.reference.pooler is None
    assert not minilm.reference.training


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", torch.float16])
def test_dtypes(dtype: str | torch.dtype) -> None:
    model = pretrained.load(ENCODER, device="cpu", dtype=dtype)
    expected = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert {p.dtype for p in model.core.parameters()} == {expected}


@pytest.mark.parametrize("dtype", ["int8", "nonsense", torch.float64])
def test_rejects_invalid_dtypes(dtype: str | torch.dtype) -> None:
    with pytest.raises(ValueError, match="float32, float16, bfloat16"):
        pretrained.load(ENCODER, dtype=dtype)


# "meta" has no values, and no machine has 99 GPUs
INVALID_DEVICES = ["toaster", "meta", "cuda:99", "", "cuda:-1", 1.5, True, torch.device("meta")]
INVALID_DEVICES += [torch.device("meta"), torch.device("cuda:99")]
if not torch.cuda.is_available():
    INVALID_DEVICES += ["cuda", "cuda:0", 0]
if not torch.backends.mps.is_available():
    INVALID_DEVICES += ["mps", torch.device("mps")]


@pytest.mark.parametrize("device", INVALID_DEVICES, ids=repr)
def test_rejects_unavailable_devices(device: Any) -> None:
    for load in (
        lambda: pretrained.load(ENCODER, device=device),
        lambda: untrained("random-tiny", device=device),
    ):
        with pytest.raises(ValueError, match="device") as error:
            load()
        assert getattr(device, "type", str(device)) in str(error.value)


@pytest.mark.parametrize("model", ["no-such-model", "models/mine", "~/mine", "a/b/c", ""])
def test_unknown_model_message(model: str) -> None:
    with pytest.raises(ValueError, match=f"'{model}'.*gpt2-novels.*ATTENTION_LAB_MODELS"):
        pretrained.load(model)


def test_load_a_folder_by_path(
    tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(tiny_gpt2, tmp_path / "some" / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = [folder, str(folder), Path("some/mine"), "some/mine", "./some/mine", "~/some/mine"]
    for path in paths:
        model = pretrained.load(path, device="cpu")
        assert (model.name, model.spec.title, model.folder) == ("mine", "mine", folder)
        assert model.source == pretrained.WeightsSource("folder", folder)
    monkeypatch.chdir("/")  # the reference is loaded later from the same folder
    ids = torch.tensor([model.tokenizer.encode("The next day").ids])
    torch.testing.assert_close(
        model.core(ids).logits, model.reference(ids).logits, atol=1e-5, rtol=0
    )


def test_folder_without_a_tokenizer_accepts_ids(tiny_gpt2: Path, tmp_path: Path) -> None:
    folder = copy(tiny_gpt2, tmp_path / "mine")
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][:70].clone()
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 70, "eos_token_id": 3}))
    model = pretrained.load(folder, device="cpu")
    assert model.core(torch.tensor([[1, 69]])).logits.shape == (1, 2, 70)
    assert (model.tokenizer.vocab_size, model.tokenizer.end_ids) == (70, {3})
    assert isinstance(model.tokenizer, pretrained.Tokenizer)
    for call in (
        lambda: model.tokenizer.encode("a"),
        lambda: model.tokenizer.decode([1]),
        lambda: model.tokenizer.decode_bytes([1]),
    ):
        with pytest.raises(ValueError, match="mine"):
            call()


def test_load_by_name_rejects_paths(
    tiny_gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(tiny_gpt2, tmp_path / "some" / "mine")
    monkeypatch.chdir(tmp_path)
    for path in (str(folder), "some/mine", "./some/mine", "some/../some/mine"):
        assert pretrained.load(path, device="cpu").folder.samefile(folder)
        with pytest.raises(ValueError, match="no model|Hub id"):
            pretrained.load_by_name(path, device="cpu")


def test_missing_known_model_explains_how_to_get_it() -> None:
    with pytest.raises(pretrained.WeightsMissing, match="ATTENTION_LAB_MODELS/gpt2"):
        pretrained.load("gpt2")


def test_unusable_local_folder_explains_why(models: Path, tiny_gpt2: Path) -> None:
    folder = copy(tiny_gpt2, models / "mine")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="can't be used: .*pickled"):
        pretrained.load("mine")


def test_rejects_tokenizers_larger_than_the_model(
    models: Path, tiny_gpt2: Path, smollm2_folder: Path
) -> None:
    folder = copy(tiny_gpt2, models / "mine")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 40_000}))
    shutil.copy(smollm2_folder / "tokenizer.json", folder)
    with pytest.raises(ValueError, match="49152.*40000"):
        pretrained.load("mine")
