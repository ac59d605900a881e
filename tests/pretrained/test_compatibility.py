"""Compatibility reports list every problem and agree with loading."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PretrainedConfig,
)

import pretrained
from pretrained import compatibility
from pretrained.weights import core_from_state_dict
from tests.helpers.checkpoints import change_state, save_tokenizer

SMALL: dict[str, tuple[PretrainedConfig, Any]] = {
    "gpt2": (
        GPT2Config(vocab_size=61, n_positions=17, n_embd=24, n_layer=3, n_head=4),
        GPT2LMHeadModel,
    ),
    "bert": (
        BertConfig(
            vocab_size=67,
            hidden_size=20,
            num_hidden_layers=2,
            num_attention_heads=5,
            intermediate_size=28,
            max_position_embeddings=19,
        ),
        BertModel,
    ),
    "llama": (
        LlamaConfig(
            vocab_size=71,
            hidden_size=24,
            intermediate_size=44,
            num_hidden_layers=3,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=23,
        ),
        LlamaForCausalLM,
    ),
}


@pytest.mark.parametrize("kind", SMALL)
def test_report_matches_loaded_model(kind: str):
    config, build = SMALL[kind]
    torch.manual_seed(3)
    theirs = build(config)
    fields = config.to_dict() | {"architectures": [build.__name__]}
    report = compatibility.check_text(json.dumps(fields))
    assert report.loads, report.obstacles
    core = core_from_state_dict(fields, theirs.state_dict())
    assert report.n_parameters == sum(parameter.numel() for parameter in core.parameters())
    assert f"{core.config.n_layers} layers of {core.config.n_heads} query heads" in report.shape


def test_report_lists_every_unsupported_option():
    config = SMALL["llama"][0].to_dict() | {
        "hidden_act": "relu",
        "rope_parameters": {"rope_type": "longrope"},
        "auto_map": {"AutoModel": "own.Model"},
        "quantization_config": {"bits": 4},
        "architectures": ["MistralForCausalLM"],
    }
    report = compatibility.check_config_dict(config)
    assert not report.loads
    all_obstacles = " ".join(report.obstacles)
    for word in ("hidden_act='relu'", "rope_type='longrope'", "auto_map", "Quantized", "Mistral"):
        assert word in all_obstacles
    assert len(report.obstacles) == 5


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
        ("{}", "model_type"),
        ('{"model_type": "llama"}', "positive integer"),
        ("9" * 1_000_001, "1,000,000"),
    ],
)
def test_rejects_invalid_configurations(text: str, names: str):
    report = compatibility.check_text(text)
    assert not report.loads
    assert names in report.obstacles[0]


@pytest.mark.parametrize("option", ["hidden_size", "num_hidden_layers", "vocab_size"])
def test_rejects_huge_sizes_before_counting_parameters(option: str):
    config = SMALL["llama"][0].to_dict() | {option: 24 * 10**12}
    report = compatibility.check_config_dict(config)
    assert not report.loads
    assert f"{24 * 10**12:,}" in report.obstacles[0]


BROKEN: dict[str, Callable[[dict[str, torch.Tensor]], object]] = {
    "missing tensor": lambda state: state.pop("transformer.h.1.ln_2.bias"),
    "extra tensor": lambda state: state.update({"lm_head.bias": torch.ones(61)}),
    "wrong shape": lambda state: state.update({"transformer.wpe.weight": torch.ones(17, 23)}),
    "integer weights": lambda state: state.update({"transformer.ln_f.bias": torch.ones(24).long()}),
    "duplicate tensor": lambda state: state.update({"ln_f.bias": torch.ones(24)}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_report_detects_folders_that_do_not_load(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The report only reads file headers, not weights."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    config, build = SMALL["gpt2"]
    build(config).save_pretrained(tmp_path / "mine")
    save_tokenizer(tmp_path / "mine")
    assert compatibility.check_model("mine").loads
    change_state(tmp_path / "mine", BROKEN[name])
    assert not compatibility.check_model("mine").loads
    with pytest.raises(ValueError, match=r"\w"):
        pretrained.load("mine", device="cpu")
