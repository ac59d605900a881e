"""Every config.json option and number that the core accepts matches transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.testing import assert_close

from pretrained import checkpoint
from pretrained.weights import core_from_reference
from tests.helpers.checkpoints import CLASSES, our_logits, their_logits
from tests.helpers.reference_models import TOLERANCE, enlarge
from tests.helpers.small_bert import SPECIAL, WORDS

VOCABULARY = [*SPECIAL, *WORDS]
N_TOKENS = 17
# Small configurations of each family; all sizes differ.
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 14, "n_positions": 31, "n_embd": 24, "n_layer": 3, "n_head": 4},
    "bert": {
        "vocab_size": 14, "max_position_embeddings": 29, "hidden_size": 20,
        "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 28,
    },
    "llama": {
        "vocab_size": 14, "max_position_embeddings": 37, "hidden_size": 36,
        "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 44,
    },
}  # fmt: skip
# A different value for every number that the core reads.
NUMBERS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "vocab_size": 19, "n_positions": 23, "n_embd": 28, "n_layer": 2, "n_head": 6,
        "n_inner": 44, "layer_norm_epsilon": 0.1,
    },
    "bert": {
        "vocab_size": 19, "max_position_embeddings": 23, "hidden_size": 25,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 44,
        "type_vocab_size": 3, "layer_norm_eps": 0.1,
    },
    "llama": {
        "vocab_size": 19, "max_position_embeddings": 23, "hidden_size": 48,
        "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 28,
        "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 0.1, "rope_theta": 300.0,
    },
}  # fmt: skip
LENGTHS = {"original_max_position_embeddings": 11}
LLAMA3 = {"factor": 3.0, **LENGTHS, "low_freq_factor": 0.05, "high_freq_factor": 1.5}
YARN = {"factor": 3.0, **LENGTHS}
# Every kind of rotary scaling, with each setting at a value other than its default.
TABLES: dict[str, list[dict[str, Any]]] = {
    "default": [{}, {"rope_theta": 300.0}],
    "linear": [{"factor": 3.0}],
    "dynamic": [{"factor": 3.0}],
    "yarn": [
        YARN,
        YARN | {"beta_fast": 2.0, "beta_slow": 0.05},
        YARN | {"beta_fast": 2.0, "beta_slow": 0.05, "truncate": False},
        YARN | {"beta_fast": 2.0, "beta_slow": 0.05, "truncate": None},
        YARN | {"attention_factor": 1.3},
        YARN | {"mscale": 1.5, "mscale_all_dim": 0.4},
        YARN | {"mscale": 0.0, "mscale_all_dim": 0.0},
        YARN | {"mscale": 0.7},
    ],
    "llama3": [LLAMA3],
}  # fmt: skip

ACCEPTED = [
    (family, option, value)
    for family, options in checkpoint.OPTIONS.items()
    for option, values in options.items()
    for value in values
]


def save(family: str, folder: Path, changes: dict[str, Any]) -> Tensor:
    """Save a random model with these settings, and return token ids for it."""
    model_class: Any = getattr(transformers, CLASSES[family])
    fields = SIZES[family] | changes
    model = enlarge(model_class(model_class.config_class(**fields)))
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    write_settings(folder, changes)
    generator = torch.Generator().manual_seed(1)
    return torch.randint(len(VOCABULARY), (2, N_TOKENS), generator=generator)


def write_settings(folder: Path, changes: dict[str, Any]) -> None:
    """Write settings into config.json unchanged, because transformers may leave some out."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(("family", "option", "value"), ACCEPTED)
def test_accepted_option(family: str, option: str, value: Any, models: Path):
    folder = models / "mine"
    tokens = save(family, folder, {option: value})
    expected, missing = their_logits(family, folder, tokens)
    assert not missing
    assert_close(our_logits(family, folder, tokens), expected, **TOLERANCE)
    if option == "tie_word_embeddings":
        return  # depends on the stored matrices, see test_every_tensor.py
    accepted_values = checkpoint.OPTIONS[family][option]
    same = False
    for other in accepted_values[: accepted_values.index(value)]:
        write_settings(folder, {option: other})
        same |= matches(family, folder, tokens, expected)
    # if the option had no effect, the comparison above would prove nothing
    assert same == ((option, value) in checkpoint.ROUNDING_ONLY)


def matches(family: str, folder: Path, tokens: Tensor, expected: Tensor) -> bool:
    """Return whether the core gives these logits; False if the weights don't fit."""
    try:
        return torch.allclose(our_logits(family, folder, tokens), expected, **TOLERANCE)
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("family", "option"), [(family, option) for family in NUMBERS for option in NUMBERS[family]]
)
def test_accepted_number(family: str, option: str, models: Path):
    folder = models / "mine"
    tokens = save(family, folder, {option: NUMBERS[family][option]})
    expected, missing = their_logits(family, folder, tokens)
    assert not missing
    assert_close(our_logits(family, folder, tokens), expected, **TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "settings"), [(kind, settings) for kind in TABLES for settings in TABLES[kind]]
)
def test_rotary_scaling_options(kind: str, settings: dict[str, Any]):
    table = {"rope_type": kind, "rope_theta": 5000.0} | settings
    config = transformers.LlamaConfig(**SIZES["llama"], rope_parameters=table)
    reference = enlarge(transformers.LlamaForCausalLM(config))
    core = core_from_reference(reference)
    tokens = torch.randint(14, (2, core.config.context_length))  # longer than the trained length
    with torch.inference_mode():
        assert_close(core(tokens).logits, reference(tokens).logits, **TOLERANCE)
