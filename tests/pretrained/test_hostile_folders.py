"""Untrusted model folders give a clear error quickly, whatever their sizes and values."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

import pretrained
from pretrained.catalog import catalog

# a GPT-2 without a tokenizer uses the bundled vocabulary
pytestmark = pytest.mark.usefixtures("bundled_weights")

Weights = dict[str, Tensor]


def copy_folder(models: Path, source: Path, **changes: Any) -> Path:
    """Copy a model folder and change fields of its config.json."""
    folder = Path(shutil.copytree(source, models / "hostile"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


def rewrite(folder: Path, change: Callable[[Weights], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory, smollm2_folder: Path) -> Path:
    """Save a tiny random Llama with SmolLM2's tokenizer."""
    folder = tmp_path_factory.mktemp("tiny") / "tiny-llama"
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=49152,
        hidden_size=12,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=3,
        max_position_embeddings=24,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    shutil.copy(smollm2_folder / "tokenizer.json", folder)
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_layer": 10**7}, "n_layers is 10,000,000, but must be at most 10,000"),
        ({"n_layer": 10**9}, "n_layers is 1,000,000,000"),
        ({"n_layer": 9_999}, "9,999 layers, but the checkpoint only has 28 tensors"),
        ({"n_inner": 10**18}, "d_ff is 1,000,000,000,000,000,000"),
        ({"n_inner": 999_999}, r"must have shape \(999999, 12\)"),
        ({"n_embd": 3 * 10**12}, "d_model is 3,000,000,000,000"),
        ({"n_positions": 10**15}, "context_length is 1,000,000,000,000,000"),
        ({"n_positions": 10**8}, r"must have shape \(100000000, 12\)"),
    ],
)
def test_sizes_are_checked_before_building_the_model(
    changes: dict[str, int], message: str, models: Path, tiny_gpt2: Path
):
    copy_folder(models, tiny_gpt2, **changes)
    with pytest.raises(ValueError, match=message):
        pretrained.load("hostile", device="cpu")


def convert_to(dtype: torch.dtype) -> Callable[[Weights], object]:
    return lambda weights: weights.update({k: t.to(dtype) for k, t in weights.items()})


def fill_one_row(value: float) -> Callable[[Weights], object]:
    return lambda weights: weights["transformer.h.1.mlp.c_fc.weight"][3].fill_(value)


def add_dimension(weights: Weights) -> None:
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][None]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (convert_to(torch.bool), "unsupported dtype torch.bool"),
        (convert_to(torch.int64), "unsupported dtype torch.int64"),
        (convert_to(torch.float8_e4m3fn), "unsupported dtype F8_E4M3"),
        (fill_one_row(float("nan")), "blocks.1.mlp.up.weight contains infinite values"),
        (fill_one_row(float("-inf")), "blocks.1.mlp.up.weight contains infinite values"),
        (lambda weights: [t.fill_(3e38) for t in weights.values()], "infinite values"),
        (add_dimension, "don't match"),
    ],
)
def test_rejects_invalid_weights(
    change: Callable[[Weights], object], message: str, models: Path, tiny_gpt2: Path
):
    rewrite(copy_folder(models, tiny_gpt2), change)
    with pytest.raises(ValueError, match=message):
        pretrained.load("hostile", device="cpu")


def test_rejects_queries_and_keys_of_different_widths(models: Path, tiny_llama: Path):
    def change(weights: Weights) -> None:
        name = "model.layers.0.self_attn.k_proj.weight"
        weights[name] = weights[name][:, :7].contiguous()

    rewrite(copy_folder(models, tiny_llama), change)
    with pytest.raises(ValueError, match="don't match"):
        pretrained.load("hostile", device="cpu")


@pytest.mark.parametrize("theta", [1e-300, 0.5])
def test_rejects_rope_theta_below_one(theta: float, models: Path, tiny_llama: Path):
    folder = copy_folder(models, tiny_llama)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="rope_theta.*1"):
        pretrained.load("hostile", device="cpu")


def test_unchanged_folder_still_loads(models: Path, tiny_llama: Path):
    copy_folder(models, tiny_llama)
    assert pretrained.load("hostile", device="cpu").core.config.n_layers == 2


def test_rejects_token_ids_beyond_the_vocabulary(models: Path, tiny_llama: Path):
    folder = copy_folder(models, tiny_llama)
    value = json.loads((folder / "tokenizer.json").read_text())
    value["added_tokens"].append(dict(value["added_tokens"][0], id=60_000, content="<far>"))
    value["model"]["vocab"]["<far>"] = 60_000
    (folder / "tokenizer.json").write_text(json.dumps(value))
    with pytest.raises(ValueError, match="60001.*49152"):
        pretrained.load("hostile", device="cpu")


@pytest.mark.parametrize("name", ["~", "~nobody-of-this-name/models", "x" * 300])
def test_catalog_survives_an_unreadable_models_folder(name: str, monkeypatch: pytest.MonkeyPatch):
    """The home folder or the user is missing, or the name is too long for the OS."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", name)
    monkeypatch.setenv("HF_HUB_CACHE", name)
    monkeypatch.setenv("HOME", "~")
    ready = {entry.spec.name for entry in catalog() if entry.state == "ready"}
    bundled = {"smollm2-135m-instruct", "all-minilm-l6-v2", "gpt2-novels", "bert-novels"}
    assert ready == bundled
