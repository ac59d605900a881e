"""The cost formulas: windows, latent attention, and invalid sizes."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from attention_core import (
    LatentConfig,
    Transformer,
    cache_bytes,
    forward_flops,
    kv_cache_bytes,
    llama_config,
    mla_cache_bytes,
)
from tests.helpers.tiny_models import TINY

KV: dict[str, Any] = {
    "n_layers": 3, "n_kv_heads": 5, "head_size": 7, "n_tokens": 11, "batch_size": 13,
    "bytes_per_value": 4, "window": 17,
}  # fmt: skip
MLA: dict[str, Any] = {
    "n_layers": 3, "latent_size": 5, "rope_size": 7, "n_tokens": 11, "batch_size": 13,
    "bytes_per_value": 4, "window": 17,
}  # fmt: skip
FLOPS: dict[str, Any] = {"config": TINY["gpt2"], "n_new": 3, "n_keys": 5, "n_logits": 2}
CACHE: dict[str, Any] = {
    "config": TINY["gpt2"], "n_tokens": 3, "batch_size": 5, "bytes_per_value": 2,
}  # fmt: skip


def _cache_bytes(**arguments: Any) -> int:
    return cache_bytes(arguments.pop("config"), arguments.pop("n_tokens"), **arguments)


@pytest.mark.parametrize(
    ("formula", "arguments", "name"),
    [(kv_cache_bytes, KV, name) for name in KV]
    + [(mla_cache_bytes, MLA, name) for name in MLA]
    + [(forward_flops, FLOPS, name) for name in FLOPS if name != "config"]
    + [(_cache_bytes, CACHE, name) for name in CACHE if name != "config"],
)
def test_rejects_sizes_below_one(formula: Callable[..., int], arguments: dict[str, Any], name: str):
    with pytest.raises(ValueError, match=f"^{name}.*0$"):
        formula(**arguments | {name: 0})


DTYPES = {torch.float64: 8, torch.float32: 4, torch.bfloat16: 2, torch.float16: 2}
VARIANTS = ("MHA", "GQA", "MQA", "MLA", "MHA, window", "GQA, window", "MQA, window", "MLA, window")


@pytest.mark.parametrize("number", range(32))
def test_formulas_match_measured_bytes_of_random_shapes(number: int):
    """Check the bytes that are allocated and the bytes that are in use."""
    draw = random.Random(number).randint
    variant = VARIANTS[number % len(VARIANTS)]
    dtype = list(DTYPES)[number // len(VARIANTS)]
    groups, n_kv_heads = draw(2, 4), draw(2, 4)
    n_heads, head_size = groups * n_kv_heads, 2 * draw(1, 9)
    n_layers, batch_size, n_tokens = draw(1, 3), draw(1, 4), draw(9, 40)
    stored_heads = {"MHA": n_heads, "GQA": n_kv_heads, "MQA": 1, "MLA": n_heads}[variant[:3]]
    config = llama_config(
        vocab_size=17,
        context_length=41,
        d_model=12,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=stored_heads,
        head_size=head_size,
        d_ff=5,
    )
    latent = LatentConfig(
        kv_rank=draw(1, 30), rope_head_size=2 * draw(1, 9), nope_head_size=draw(1, 9), v_head_size=3
    )
    if variant.startswith("MLA"):
        config = replace(config, latent=latent, n_kv_heads=None, head_size=None)
    if variant.endswith("window"):
        config = replace(config, window=draw(1, n_tokens + 3))
    model = Transformer(config).to(dtype).eval()
    cache = model.new_cache(batch_size, n_tokens)
    shared: dict[str, Any] = {
        "n_layers": n_layers,
        "batch_size": batch_size,
        "bytes_per_value": DTYPES[dtype],
        "window": config.window,
    }

    def expected_bytes(n: int) -> int:
        if variant.startswith("MLA"):
            sizes = {"latent_size": latent.kv_rank, "rope_size": latent.rope_head_size}
            return mla_cache_bytes(n_tokens=n, **sizes, **shared)
        return kv_cache_bytes(n_tokens=n, n_kv_heads=stored_heads, head_size=head_size, **shared)

    def check(measured: int, n: int) -> None:
        inputs = {"batch_size": batch_size, "bytes_per_value": DTYPES[dtype]}
        assert measured == expected_bytes(n) == cache_bytes(config, n, **inputs)

    check(cache.nbytes, n_tokens)
    assert cache.nbytes_used == 0
    length = 0
    with torch.inference_mode():
        for n_new in (draw(1, n_tokens - 3), 1, 1):
            model(torch.zeros(batch_size, n_new, dtype=torch.long), cache=cache)
            length += n_new
            check(cache.nbytes_used, length)
    stored = sum(
        tensor.numel() * tensor.element_size()
        for layer in range(n_layers)
        for tensor in cache.layer(layer)
    )
    assert stored == cache.nbytes_used
