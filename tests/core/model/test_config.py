"""A configuration refuses every value that no model can be built from."""

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from attention_core import PRESETS, LatentConfig, Transformer, TransformerConfig
from tests.helpers.tiny_models import TINY

LATENT = LatentConfig(kv_rank=3, nope_head_size=5, rope_head_size=2, v_head_size=4)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("positions", "alibi"), ("norm", "batch"), ("norm_order", "mid"), ("output", "x"),
     ("activation", "tanh"), ("norm", None), ("positions", ["rotary"])],
)  # fmt: skip
def test_only_known_parts(name: str, wrong: object):
    with pytest.raises(
        ValueError, match=f"{name} must be one of '.*', got .*{wrong!r}".replace("[", r"\[")
    ):
        replace(TINY["llama"], **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["norm_eps", "rope_theta"])
@pytest.mark.parametrize("wrong", [0.0, -1e-5, math.nan, math.inf, True, "1", None])
def test_numbers_are_positive_and_finite(name: str, wrong: object):
    with pytest.raises(ValueError, match=f"{name} must be a finite number, above 0, got"):
        replace(TINY["llama"], **{name: wrong})  # type: ignore[arg-type]


SIZES = ("vocab_size", "context_length", "d_model", "n_layers", "n_heads", "d_ff")


@pytest.mark.parametrize("name", [*SIZES, "n_kv_heads", "head_size", "window", "n_segments"])
@pytest.mark.parametrize("wrong", [-4, 2.0, True, "8"])
def test_sizes_are_whole_numbers(name: str, wrong: object):
    with pytest.raises(ValueError, match=rf"{name} must be (a whole number|at least \d), got"):
        replace(TINY["gpt2"], **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*SIZES, "n_kv_heads", "head_size", "window"])
def test_sizes_are_at_least_one(name: str):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        replace(TINY["gpt2"], **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_is_needed_cannot_be_none(name: str):
    with pytest.raises(ValueError, match=f"{name} must be a whole number, got None"):
        replace(TINY["gpt2"], **{name: None})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["causal", "gated", "attention_bias", "mlp_bias"])
@pytest.mark.parametrize("wrong", [1, 0, None, "yes"])
def test_switches_are_bools(name: str, wrong: object):
    with pytest.raises(ValueError, match=f"{name} must be one of True, False, got"):
        replace(TINY["gpt2"], **{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_rank": True}, "kv_rank must be a whole number, got True"),
        ({"q_rank": 1.5}, "q_rank must be a whole number, got 1.5"),
        ({"norm_eps": math.nan}, "norm_eps must be a finite number, above 0, got nan"),
        ({"absorbed": 1}, "absorbed must be one of True, False, got 1"),
    ],
)
def test_latent_fields(change: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        replace(LATENT, **change)


def test_latent_sizes_are_latent_sizes():
    with pytest.raises(ValueError, match="latent must be a LatentConfig, got 3"):
        replace(TINY["llama"], latent=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [*PRESETS.values(), *TINY.values()])
def test_every_field_of_a_real_configuration_is_accepted_again(config: TransformerConfig):
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    assert TransformerConfig(**values) == config


def test_no_segments_is_a_number_of_segments():
    assert Transformer(replace(TINY["gpt2"], n_segments=0)).segments is None
