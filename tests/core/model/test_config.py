"""A configuration rejects every value that no model can be built from."""

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from attention_core import PRESETS, LatentConfig, Transformer, TransformerConfig
from tests.helpers.tiny_models import TINY

LATENT = LatentConfig(kv_rank=3, nope_head_size=5, rope_head_size=2, v_head_size=4)
SIZES = ("vocab_size", "context_length", "d_model", "n_layers", "n_heads", "d_ff")
WRONG: list[tuple[str, object]] = [
    *((name, invalid) for name in SIZES for invalid in (0, 2.0, None)),
    *((name, invalid) for name in ("n_kv_heads", "head_size", "window") for invalid in (0, True)),
    *((name, invalid) for name in ("norm_eps", "rope_theta") for invalid in (0.0, math.inf, True)),
    *((name, 1) for name in ("causal", "gated", "attention_bias", "mlp_bias")),
    *((name, "x") for name in ("positions", "norm", "norm_order", "output", "activation")),
    ("positions", ["rotary"]),
    ("n_segments", -4),
    ("latent", 3),
    ("n_heads", 5),
    ("n_kv_heads", 4),
]


@pytest.mark.parametrize(("name", "invalid"), WRONG)
def test_rejects_invalid_values(name: str, invalid: Any):
    with pytest.raises(ValueError, match=f"{name}.*{invalid}".replace("[", r"\[")):
        replace(TINY["llama"], **{name: invalid})


@pytest.mark.parametrize(
    ("name", "invalid"),
    [
        ("kv_rank", True),
        ("kv_rank", 0),
        ("q_rank", -2),
        ("v_head_size", 0),
        ("rope_head_size", 7),
        ("norm_eps", math.nan),
        ("absorbed", 1),
    ],
)
def test_rejects_invalid_latent_sizes(name: str, invalid: Any):
    with pytest.raises(ValueError, match=f"{name}.*{invalid}"):
        replace(LATENT, **{name: invalid})


@pytest.mark.parametrize("config", [*PRESETS.values(), *TINY.values()])
def test_valid_configurations_can_be_rebuilt_from_their_fields(config: TransformerConfig):
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    assert TransformerConfig(**values) == config


def test_zero_segments_is_valid():
    assert Transformer(replace(TINY["gpt2"], n_segments=0)).segments is None
