"""Public models compared with their published configurations and the lecture."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from attention_core.costs.public_models import (
    GPT3_FAMILY,
    LECTURE_30B,
    LECTURE_DEEPSEEK,
    PUBLIC_MODELS,
    LectureExample,
    PublicModel,
)
from attention_core.costs.serving import (
    cache_bytes,
    cache_parts,
    growth_exponent,
    max_context,
    max_sequences,
    token_cost,
    weight_bytes,
)
from tests.helpers.lectures import DATA, LECTURE_NUMBERS

PUBLISHED = json.loads((DATA / "published_configs.json").read_text(encoding="utf-8"))
LECTURE = LECTURE_NUMBERS
BY_NAME = {model.name: model for model in PUBLIC_MODELS}

# all sizes differ; layers 0 and 1 are global, the other three cache 10 tokens
TINY = PublicModel("tiny", "none", 5, 6, 3, 7, 11, 1000, 64, "-", window=10, n_global_layers=2)
LATENT = PublicModel("latent", "none", 5, 6, 6, 7, 11, 1000, 64, "-", latent_size=13, rope_size=4)


def expected_cache_bytes(config: dict[str, Any], n_tokens: int, batch: int, width: int) -> int:
    """Add up the cache size from the published fields, layer by layer."""
    if "n_layer" in config:  # GPT-2
        return config["n_layer"] * 2 * config["n_embd"] * n_tokens * batch * width
    if "n_params" in config:  # the table in GPT-3's paper
        values = 2 * config["n_heads"] * config["d_head"]
        return config["n_layers"] * values * n_tokens * batch * width
    if "kv_lora_rank" in config:
        values = config["kv_lora_rank"] + config["qk_rope_head_dim"]
        return config["num_hidden_layers"] * values * n_tokens * batch * width
    n_heads = config["num_attention_heads"]
    head = config.get("head_dim", config["hidden_size"] // n_heads)
    total = 0
    for layer in range(config["num_hidden_layers"]):
        n_cached = n_tokens
        window = config.get("sliding_window")
        # global layers: every second in Gemma 2, every sixth in Gemma 3, none in Mistral
        every = {"gemma2": 2, "gemma3_text": 6}.get(config["model_type"])
        if window and not (every and (layer + 1) % every == 0):
            n_cached = min(n_cached, window)
        total += 2 * config.get("num_key_value_heads", n_heads) * head * n_cached
    return total * batch * width


def expected_parameters(config: dict[str, Any]) -> float:
    """Count parameters from the published fields; GPT-3's count is as printed."""
    if "n_params" in config:
        return float(config["n_params"].rstrip("MB")) * (1e6 if "M" in config["n_params"] else 1e9)
    if "n_layer" in config:
        width = config["n_embd"]
        return config["n_layer"] * 12 * width**2 + width * (
            config["vocab_size"] + config["n_positions"]
        )
    width, n_heads = config["hidden_size"], config["num_attention_heads"]
    layers, dense = config["num_hidden_layers"], 3 * width * config["intermediate_size"]
    if "kv_lora_rank" in config:
        plain, rope = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        attention = width * (config["q_lora_rank"] + config["kv_lora_rank"] + rope)
        attention += config["q_lora_rank"] * n_heads * (plain + rope)
        attention += config["kv_lora_rank"] * n_heads * (plain + config["v_head_dim"])
        attention += n_heads * config["v_head_dim"] * width
    else:
        head = config.get("head_dim", width // n_heads)
        attention = 2 * width * head * (n_heads + config["num_key_value_heads"])
    feed_forward = layers * dense * config.get("num_local_experts", 1)
    if "n_routed_experts" in config:
        first = config["first_k_dense_replace"]
        experts = config["n_routed_experts"] + config["n_shared_experts"]
        expert = 3 * width * config["moe_intermediate_size"]
        feed_forward = first * dense + (layers - first) * expert * experts
    vocabulary = config["vocab_size"] * width * (1 if config["tie_word_embeddings"] else 2)
    return layers * attention + feed_forward + vocabulary


@pytest.mark.parametrize("name", PUBLISHED)
def test_cache_size_matches_the_published_configuration(name: str):
    model, config = BY_NAME[name], PUBLISHED[name]["config"]
    for n_tokens, batch, width in ((1, 1, 4), (1000, 3, 2), (5000, 1, 1), (131_072, 8, 2)):
        computed = cache_bytes(model, n_tokens, batch_size=batch, bytes_per_value=width)
        expected = expected_cache_bytes(config, n_tokens, batch, width)
        assert computed == pytest.approx(expected, rel=0.01)
        # the formula and the sizes are the same, so the result is exact
        assert computed == expected
    n_heads = config.get("num_attention_heads") or config.get("n_head") or config["n_heads"]
    assert model.n_heads == n_heads
    assert model.d_model == next(
        config[k] for k in ("hidden_size", "n_embd", "d_model") if k in config
    )
    context = next(
        config[k] for k in ("max_position_embeddings", "n_positions", "n_ctx") if k in config
    )
    assert model.context_length == context
    assert model.n_parameters == pytest.approx(expected_parameters(config), rel=0.01)


@pytest.mark.parametrize(("name", "published"), [("Mixtral 8x7B", 12.9e9), ("DeepSeek-V2", 21e9),
                                                 ("DeepSeek-V3", 37e9)])  # fmt: skip
def test_active_parameters_are_close_to_the_announced_count(name: str, published: float):
    assert BY_NAME[name].active_parameters == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(("example", "number"), [(LECTURE_30B, 0), (LECTURE_DEEPSEEK, 1)])
def test_lecture_cache_sizes(example: LectureExample, number: int):
    lecture = LECTURE["003_kv_cache_size"]["examples"][number]
    computed = cache_bytes(example.model, example.n_tokens, batch_size=example.batch_size)
    assert computed == lecture["bytes"]
    assert example.printed == lecture["printed"] == f"{round(computed / 1e9, -1):.0f} GB"
    assert example.model.n_layers == lecture["n_layers"]
    width = example.model.n_kv_heads * example.model.head_size
    assert width == lecture.get("d_model", 128 * 128)


def test_deepseek_v3_cache_is_57_times_smaller_than_in_the_lecture():
    own = cache_bytes(BY_NAME["DeepSeek-V3"], 100_000)
    assert own == 61 * (512 + 64) * 100_000 * 2 == 7_027_200_000
    assert cache_bytes(LECTURE_DEEPSEEK.model, 100_000) / own == pytest.approx(2 * 128 * 128 / 576)


def test_sliding_windows_are_counted_per_layer():
    # 2 layers cache all tokens, 3 at most 10; a token takes 2 * 3 * 7 values per layer
    for n_tokens, n_cached in ((4, 5 * 4), (10, 5 * 10), (25, 2 * 25 + 3 * 10)):
        assert cache_bytes(TINY, n_tokens, batch_size=3, bytes_per_value=4) == n_cached * 42 * 3 * 4
    parts = cache_parts(TINY, 25)
    assert [(part.n_layers, part.n_tokens, part.n_values) for part in parts] == [
        (2, 25, 42),
        (3, 10, 42),
    ]
    assert [part.n_layers for part in cache_parts(replace(TINY, n_global_layers=5), 25)] == [5]
    assert cache_bytes(TINY.as_multi_head(), 25) == 5 * 25 * 2 * 6 * 7 * 2
    assert cache_bytes(LATENT, 25, batch_size=3) == 5 * 25 * 17 * 3 * 2
    assert cache_bytes(LATENT.as_multi_head(), 25) == cache_bytes(TINY.as_multi_head(), 25)


@pytest.mark.parametrize("model", [TINY, LATENT, replace(TINY, window=None, n_global_layers=0)])
@pytest.mark.parametrize("n_free", [-5, 419, 420, 421, 123_456])
def test_longest_context_is_exact(model: PublicModel, n_free: int):
    longest = max_context(model, n_free, batch_size=2, bytes_per_value=1)
    assert longest is not None
    if longest:
        assert cache_bytes(model, longest, batch_size=2, bytes_per_value=1) <= n_free
    assert cache_bytes(model, longest + 1, batch_size=2, bytes_per_value=1) > max(n_free, 0)


def test_model_with_only_sliding_windows_fits_any_length():
    windowed = replace(TINY, n_global_layers=0)
    full = cache_bytes(windowed, 10)
    assert max_context(windowed, full) is None
    assert max_context(windowed, full - 1) == 9
    assert max_sequences(windowed, 3 * full + 1, 10_000) == 3
    assert max_sequences(windowed, -1, 10_000) == 0


def test_weights_with_few_bits():
    assert [weight_bytes(1001, bits) for bits in (32, 16, 8, 4)] == [4004, 2002, 1001, 501]
    with pytest.raises(ValueError, match="0 parameters of 16 bits"):
        weight_bytes(0, 16)


def test_cost_per_token():
    cost = token_cost(TINY, 25, batch_size=4, bytes_per_value=4, weight_bits=32)
    n_cached = 2 * 25 + 3 * 10
    # per head and cached token: 7 products for q @ k^T and 7 for the weighted sum, 2 operations
    # each
    assert cost.attention_operations == n_cached * 6 * 2 * 7 * 2
    assert cost.weight_operations == 2 * 1000
    assert cost.weight_bytes == 1000  # 4 bytes each, shared by 4 sequences
    assert cost.cache_bytes == cache_bytes(TINY, 25, bytes_per_value=4)
    absorbed = token_cost(LATENT, 25)
    assert absorbed.attention_operations == 5 * 25 * 6 * 2 * (13 + 4 + 13)
    experts = replace(TINY, n_active_parameters=300)
    assert token_cost(experts, 1, batch_size=2).weight_bytes == 300 * 2
    assert token_cost(experts, 1, batch_size=4).weight_bytes == 1000 * 2 / 4
    assert token_cost(experts, 1).weight_operations == 600


def test_gpt3_cache_grows_more_slowly_than_its_weights():
    sizes = [model.n_parameters for model in GPT3_FAMILY]
    caches = [cache_bytes(model, 2048) for model in GPT3_FAMILY]
    assert sizes == sorted(sizes)
    assert caches == sorted(caches)
    assert 0.6 < growth_exponent(sizes, caches) < 0.7
    assert growth_exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    assert math.isclose(caches[-1], 96 * 2 * 12288 * 2048 * 2)
    for sizes, others in (([1], [1]), ([1, 1], [1, 2]), ([1, 2], [0, 1]), ([1, 2], [1])):
        with pytest.raises(ValueError, match="sizes"):
            growth_exponent(sizes, others)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_layers": 0}, "n_layers.*0"),
        ({"n_kv_heads": 4}, "6.*4"),
        ({"n_global_layers": 6}, "n_global_layers.*5.*6"),
        ({"latent_size": 3}, "latent_size"),
        ({"latent_size": 3, "rope_size": 2}, "window"),
    ],
)
def test_rejects_invalid_shapes(wrong: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **wrong)
