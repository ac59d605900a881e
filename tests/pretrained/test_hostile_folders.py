"""Model folders of strangers: a sentence at once, whatever their sizes and numbers say."""

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

# a GPT-2 without a tokenizer of its own takes the bundled vocabulary
pytestmark = pytest.mark.usefixtures("bundled_weights")

Weights = dict[str, Tensor]


def folder_of(models: Path, source: Path, **changes: Any) -> Path:
    """A copy of a model folder, with other words in its config.json."""
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
    """A folder with a tiny random Llama and SmolLM2's tokenizer."""
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
    ("changes", "says"),
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
def test_sizes_are_compared_before_anything_is_built(
    changes: dict[str, int], says: str, models: Path, tiny_gpt2: Path
):
    folder_of(models, tiny_gpt2, **changes)
    with pytest.raises(ValueError, match=says):
        pretrained.load("hostile", device="cpu")


def stored_as(dtype: torch.dtype) -> Callable[[Weights], object]:
    return lambda weights: weights.update({k: t.to(dtype) for k, t in weights.items()})


def with_a(number: float) -> Callable[[Weights], object]:
    return lambda weights: weights["transformer.h.1.mlp.c_fc.weight"][3].fill_(number)


def wide(weights: Weights) -> None:
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][None]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (stored_as(torch.bool), "unsupported dtype torch.bool"),
        (stored_as(torch.int64), "unsupported dtype torch.int64"),
        (stored_as(torch.float8_e4m3fn), "unsupported dtype F8_E4M3"),
        (with_a(float("nan")), "blocks.1.mlp.up.weight contains infinite values"),
        (with_a(float("-inf")), "blocks.1.mlp.up.weight contains infinite values"),
        (lambda weights: [t.fill_(3e38) for t in weights.values()], "infinite values"),
        (wide, "don't match"),
    ],
)
def test_weights_that_are_no_numbers(
    change: Callable[[Weights], object], says: str, models: Path, tiny_gpt2: Path
):
    rewrite(folder_of(models, tiny_gpt2), change)
    with pytest.raises(ValueError, match=says):
        pretrained.load("hostile", device="cpu")


def test_queries_and_keys_of_unlike_widths(models: Path, tiny_llama: Path):
    def change(weights: Weights) -> None:
        name = "model.layers.0.self_attn.k_proj.weight"
        weights[name] = weights[name][:, :7].contiguous()

    rewrite(folder_of(models, tiny_llama), change)
    with pytest.raises(ValueError, match="don't match"):
        pretrained.load("hostile", device="cpu")


@pytest.mark.parametrize("theta", [1e-300, 0.5])
def test_rotary_positions_that_turn_too_fast(theta: float, models: Path, tiny_llama: Path):
    folder = folder_of(models, tiny_llama)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": theta}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="rope_theta.*1"):
        pretrained.load("hostile", device="cpu")


def test_what_is_left_alone_still_loads(models: Path, tiny_llama: Path):
    folder_of(models, tiny_llama)
    assert pretrained.load("hostile", device="cpu").core.config.n_layers == 2


def test_a_tokenizer_with_an_id_beyond_the_model(models: Path, tiny_llama: Path):
    folder = folder_of(models, tiny_llama)
    value = json.loads((folder / "tokenizer.json").read_text())
    value["added_tokens"].append(dict(value["added_tokens"][0], id=60_000, content="<far>"))
    value["model"]["vocab"]["<far>"] = 60_000
    (folder / "tokenizer.json").write_text(json.dumps(value))
    with pytest.raises(ValueError, match="60001.*49152"):
        pretrained.load("hostile", device="cpu")


@pytest.mark.parametrize("name", ["~", "~nobody-of-this-name/models", "x" * 300])
def test_a_models_folder_that_cannot_be_looked_at(name: str, monkeypatch: pytest.MonkeyPatch):
    """No home folder, no such user, and an operating system that refuses the name."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", name)
    monkeypatch.setenv("HF_HUB_CACHE", name)
    monkeypatch.setenv("HOME", "~")
    here = {entry.spec.name for entry in catalog() if entry.state == "ready"}
    brought_along = {"smollm2-135m-instruct", "all-minilm-l6-v2", "gpt2-novels", "bert-novels"}
    assert here == brought_along
