"""Saved models give the same results in transformers and when loaded again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import pretrained
from attention_core import LatentConfig, Transformer, TransformerConfig
from attention_core.positions.scaling import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
    YarnScaling,
)
from attention_core.speed.int8 import Int8Transformer
from pretrained.export import checkpoint_config
from pretrained.masked_word import masked_word_head
from tests.helpers.bundled_models import FIRST_BERT, FIRST_GPT2, bundled_model
from tests.helpers.reference_models import TOLERANCE
from tests.helpers.tiny_models import TINY

LLAMA = TINY["llama"]
CONFIGS: dict[str, TransformerConfig] = TINY | {
    "gpt2, untied": replace(TINY["gpt2"], output="separate"),
    "gpt2, different epsilon": replace(TINY["gpt2"], norm_eps=0.1),
    "bert, tanh": replace(TINY["bert"], activation="gelu_tanh", n_segments=3, norm_eps=0.1),
    "bert, one segment": replace(TINY["bert"], n_segments=1),
    "llama, biases": replace(LLAMA, mlp_bias=True, norm_eps=0.1, rope_theta=500.0),
    "llama, no bias": replace(LLAMA, attention_bias=False),
    "llama, all heads": replace(LLAMA, n_kv_heads=None, output="tied"),
}
SCALINGS: dict[str, tuple[RopeScaling, int]] = {
    "linear": (LinearScaling(1.5), 49),  # trained length: 33 tokens
    "dynamic": (DynamicScaling(3.0, 19), 57),
    "yarn": (YarnScaling(3.0, 19, beta_fast=2.0, beta_slow=0.05, truncate=False), 57),
    "yarn, a factor": (YarnScaling(3.0, 19, attention_factor=1.3), 61),
    "llama3": (Llama3Scaling(3.0, 19, low_freq_factor=0.05, high_freq_factor=1.5), 53),
}
CONFIGS |= {
    name: replace(LLAMA, rope_scaling=scaling, context_length=length)
    for name, (scaling, length) in SCALINGS.items()
}


def random_core(config: TransformerConfig) -> Transformer:
    """Build a core whose weights make attention far from uniform."""
    torch.manual_seed(0)
    core = Transformer(config).eval().requires_grad_(False)
    for parameter in core.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.dim() == 1) * 0.5)
    return core


def ids_for(config: TransformerConfig) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(config.vocab_size, (2, config.context_length), generator=generator)


def load_with_transformers(auto_class: Any, folder: Path) -> Any:
    """Load a folder with transformers, and check that no weight is missing or unused.

    AutoModel adds a pooler to BERT, which doesn't affect its hidden states.
    """
    model, report = auto_class.from_pretrained(folder, output_loading_info=True)
    missing = {name for name in report["missing_keys"] if not name.startswith("pooler.")}
    assert not missing
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    return model.eval()


@pytest.mark.parametrize("name", CONFIGS)
def test_transformers_gives_the_same_results_for_a_saved_core(name: str, tmp_path: Path):
    core = random_core(CONFIGS[name])
    folder = pretrained.save(core, tmp_path / "a" / "mine")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    ids = ids_for(core.config)
    ours = core(ids)
    if ours.logits is None:
        theirs = load_with_transformers(AutoModel, folder)(ids).last_hidden_state
        assert_close(ours.hidden, theirs, **TOLERANCE)
    else:
        theirs = load_with_transformers(AutoModelForCausalLM, folder)(ids).logits
        assert_close(ours.logits, theirs, **TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_saved_core_loads_bit_for_bit(name: str, dtype: torch.dtype, tmp_path: Path):
    core = random_core(CONFIGS[name]).to(dtype)
    pretrained.save(core, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {dtype}
    loaded = pretrained.load(tmp_path, device="cpu", dtype=dtype).core
    assert checkpoint_config(loaded.config) == checkpoint_config(core.config)
    weights = core.state_dict()
    assert loaded.state_dict().keys() == weights.keys()
    for key, weight in loaded.state_dict().items():
        assert torch.equal(weight, weights[key]), key


# difference named in the error -> a core that no transformers model supports
NO_FORM: dict[str, TransformerConfig] = {
    "latent=": replace(LLAMA, n_kv_heads=None, head_size=None, latent=LatentConfig(6, 4, 2, 3)),
    "window=5": replace(LLAMA, window=5),
    "n_kv_heads=2": replace(TINY["gpt2"], n_kv_heads=2),
    "activation='relu'": replace(TINY["gpt2"], activation="relu"),
    "norm_order='post'": replace(TINY["gpt2"], norm_order="post"),
    "n_segments=0": replace(TINY["bert"], n_segments=0),
    "output='none'": replace(TINY["gpt2"], output="none"),
    "positions='rotary'": replace(LLAMA, causal=False),
    "context_length=50": replace(LLAMA, rope_scaling=LinearScaling(1.5), context_length=50),
}


@pytest.mark.parametrize("named", NO_FORM)
def test_rejects_cores_that_transformers_does_not_support(named: str, tmp_path: Path):
    with pytest.raises(ValueError, match=named):
        pretrained.save(Transformer(NO_FORM[named]), tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_rejects_8_bit_cores(tmp_path: Path):
    with pytest.raises(ValueError, match="8-bit"):
        pretrained.save(Int8Transformer(random_core(TINY["gpt2"])), tmp_path / "mine")


@pytest.mark.parametrize("name", [FIRST_GPT2, "all-minilm-l6-v2"])
def test_saving_a_loaded_model_includes_its_tokenizer(name: str, tmp_path: Path):
    model = bundled_model(name)
    folder = pretrained.save(model, tmp_path)
    text = "It was a dark and stormy night"
    reloaded = pretrained.load(folder, device="cpu")
    ids = reloaded.tokenizer.encode(text).ids
    assert ids == model.tokenizer.encode(text).ids
    assert AutoTokenizer.from_pretrained(folder)(text).input_ids == list(ids)
    assert reloaded.tokenizer.end_ids == model.tokenizer.end_ids
    if model.core.unembedding is not None:
        theirs = load_with_transformers(AutoModelForCausalLM, folder)
        assert theirs.config.eos_token_id in model.tokenizer.end_ids
        tokens = torch.tensor([ids])
        assert_close(model.core(tokens).logits, theirs(tokens).logits, atol=1e-5, rtol=1e-5)


def test_saving_an_encoder_keeps_its_pooler(tmp_path: Path):
    model = bundled_model("all-minilm-l6-v2")
    pretrained.save(model, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    expected = load_file(model.folder / "model.safetensors")["pooler.dense.weight"]
    assert torch.equal(stored["pooler.dense.weight"], expected)


def test_masked_word_head_follows_an_edited_embedding(tmp_path: Path):
    model = pretrained.load(FIRST_BERT, device="cpu")
    model.core.embedding[7] = 0.5
    folder = pretrained.save(model, tmp_path)
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    reloaded = pretrained.load(folder, device="cpu")
    ids = torch.tensor([reloaded.tokenizer.encode("It was a dark and [MASK] night").ids])
    ours = masked_word_head(reloaded)(reloaded.core(ids).hidden)
    assert torch.equal(ours, masked_word_head(model)(model.core(ids).hidden))
    theirs = load_with_transformers(AutoModelForMaskedLM, folder)(ids).logits
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_output_matrix_of_a_masked_word_head(tied: bool, tmp_path: Path):
    """A tied output matrix follows edits of the token embedding; an untied one doesn't."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5}
    config = transformers.BertConfig(**sizes, intermediate_size=28, max_position_embeddings=19)
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    state = load_file(file)
    matrix = state["bert.embeddings.word_embeddings.weight"] + (0.0 if tied else 1.0)
    save_file(state | {"cls.predictions.decoder.weight": matrix}, file, {"format": "pt"})
    model = pretrained.load(tmp_path / "theirs", device="cpu")
    model.core.embedding[7] = 0.5
    pretrained.save(model, tmp_path / "ours")
    ids = torch.tensor([[1, 7, 60]])
    reloaded = pretrained.load(tmp_path / "ours", device="cpu")
    expected = model.core.embedding if tied else matrix
    head = masked_word_head(reloaded)
    assert torch.equal(head.output, expected)
    reference = AutoModelForMaskedLM.from_pretrained(tmp_path / "ours").eval()
    assert_close(head(reloaded.core(ids).hidden), reference(ids).logits, **TOLERANCE)


def test_model_can_be_saved_over_its_own_folder(tmp_path: Path):
    pretrained.save(bundled_model(FIRST_GPT2), tmp_path)
    model = pretrained.load(tmp_path, device="cpu")
    model.core.positions[0] = 0.5
    pretrained.save(model, tmp_path)
    reloaded = pretrained.load(tmp_path, device="cpu")
    assert torch.equal(reloaded.core.positions, model.core.positions)
    assert reloaded.tokenizer.encode("a b").ids == model.tokenizer.encode("a b").ids
