"""The cost formulas: windows, latent attention, and sizes that make no sense."""

from collections.abc import Callable
from typing import Any

import pytest

from attention_core import forward_flops, kv_cache_bytes, mla_cache_bytes
from tests.core.conftest import TINY

KV: dict[str, Any] = {
    "n_layers": 3, "n_kv_heads": 5, "head_size": 7, "n_tokens": 11, "batch_size": 13,
    "bytes_per_value": 4, "window": 17,
}  # fmt: skip
MLA: dict[str, Any] = {
    "n_layers": 3, "latent_size": 5, "rope_size": 7, "n_tokens": 11, "batch_size": 13,
    "bytes_per_value": 4,
}  # fmt: skip
FLOPS: dict[str, Any] = {"config": TINY["gpt2"], "n_new": 3, "n_keys": 5, "n_logits": 2}


def test_a_window_caps_what_is_kept():
    whole = 3 * 13 * 5 * 7 * 11 * 2 * 4
    assert kv_cache_bytes(**KV) == kv_cache_bytes(**KV | {"window": None}) == whole
    assert kv_cache_bytes(**KV | {"window": 11}) == whole
    assert kv_cache_bytes(**KV | {"window": 2}) == whole // 11 * 2


def test_latent_attention_keeps_one_latent_and_one_rotary_key():
    assert mla_cache_bytes(**MLA) == 3 * 13 * (5 + 7) * 11 * 4


@pytest.mark.parametrize(
    ("formula", "arguments", "name"),
    [(kv_cache_bytes, KV, name) for name in KV]
    + [(mla_cache_bytes, MLA, name) for name in MLA]
    + [(forward_flops, FLOPS, name) for name in FLOPS if name != "config"],
)
@pytest.mark.parametrize("wrong", [0, -3])
def test_sizes_below_one_are_named(
    formula: Callable[..., int], arguments: dict[str, Any], name: str, wrong: int
):
    formula(**arguments)
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got {wrong}$"):
        formula(**arguments | {name: wrong})
