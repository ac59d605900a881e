"""Tiny decoders with every attention variant and distinct sizes, and ways to run them."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import KVCache, LatentConfig, Transformer, TransformerConfig
from tests.helpers.tiny_models import TINY

LENGTH = 23
CHUNKS = {
    "at once": [LENGTH],
    "one by one": [1] * LENGTH,
    "uneven": [7, 1, 1, 9, 2, 3],
    "one then many": [1, LENGTH - 1],
    "many then one": [LENGTH - 1, 1],
}
chunked = pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS.keys())


def enlarged_model(config: TransformerConfig, seed: int = 0) -> Transformer:
    """Return a model with weights large enough that attention is far from uniform."""
    torch.manual_seed(seed)
    model = Transformer(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.dim() == 1) * 0.5)
    return model


def tokens(model: Transformer, batch: int = 2, length: int = LENGTH) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def feed(
    model: Transformer, ids: torch.Tensor, cache: KVCache | None, sizes: list[int]
) -> torch.Tensor:
    """Return the logits of all positions, computed in chunks of these sizes."""
    return torch.cat([model(chunk, cache=cache).logits for chunk in ids.split(sizes, 1)], dim=1)


def check_chunks(model: Transformer, cache: KVCache, sizes: list[int]) -> None:
    ids = tokens(model, cache.batch_size)
    assert_close(feed(model, ids, cache, sizes), model(ids).logits, atol=1e-5, rtol=1e-5)
    assert cache.length == LENGTH


def check_crop(model: Transformer, cache: KVCache) -> None:
    """Run eleven wrong tokens and crop them: later logits must be the same as without them."""
    ids = tokens(model, cache.batch_size)
    other = (ids + 1) % model.config.vocab_size
    model(torch.cat((ids[:, :9], other[:, 9:20]), dim=1), cache=cache)
    cache.crop(9)
    continued = feed(model, ids[:, 9:], cache, [4, 1, LENGTH - 14])
    assert_close(continued, model(ids).logits[:, 9:], atol=1e-5, rtol=1e-5)


HEADS: dict[str, TransformerConfig] = {
    f"{style}, {heads}": replace(TINY[style], n_heads=6, n_kv_heads=kv, head_size=8)
    for (style, (heads, kv)) in itertools.product(
        ("gpt2", "llama"), {"MHA": 6, "GQA of 3": 3, "GQA of 2": 2, "MQA": 1}.items()
    )
}
_LATENT = LatentConfig(
    kv_rank=14, nope_head_size=5, rope_head_size=6, v_head_size=7, q_rank=10, norm_eps=1e-5
)
LATENT: dict[str, TransformerConfig] = {
    name: replace(TINY[style], n_heads=4, n_kv_heads=None, head_size=None, latent=latent)
    for name, style, latent in (
        ("expanded", "llama", _LATENT),
        ("absorbed", "llama", replace(_LATENT, absorbed=True)),
        ("queries not compressed", "llama-tied", replace(_LATENT, q_rank=None)),
        (
            "queries not compressed, absorbed, halves",
            "llama-tied",
            replace(_LATENT, q_rank=None, absorbed=True, interleaved=False),
        ),
    )
}
