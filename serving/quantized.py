"""Models in 8 bits, and what the rounding of their weights costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from serving import models, turns
from serving.cache import kept
from serving.limits import INT8_CACHE_BYTES, SMALL_CACHE_BYTES

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import Transformer
    from attention_core.quantized.int8 import Int8Transformer

Weights = Literal["float32", "int8"]

# Plain prose that no model has seen: what the price is measured on.
TEXT = (
    "The harbour was quiet when Mara unlocked the office. Two boats had come in during the night, "
    "and their nets hung over the rail like wet curtains. She put the kettle on, opened the ledger "
    "and wrote down the date, the weather and the names of both captains. Outside, a gull walked "
    "along the wall as if it were waiting for somebody. At nine the telephone rang. It was the "
    "school: her son had forgotten his lunch again, and could she bring it before noon? She said "
    "that she could, laughed, and closed the ledger. The kettle had boiled dry."
)
_CHUNK = 8  # tokens of a pass: as few rows as a decode step has, so that they are rounded like one


@dataclass(frozen=True)
class Price:
    """What 8 bits save, and what they cost on `TEXT`, token for token.

    n_bytes, n_bytes_int8: of all weights. n_tokens: how many next tokens were compared.
    largest_difference: between two logits. n_equal: how often both find the same token likeliest.
    perplexity, perplexity_int8: e to the mean surprise at the token that comes.
    """

    n_bytes: int
    n_bytes_int8: int
    n_tokens: int
    largest_difference: float
    n_equal: int
    perplexity: float
    perplexity_int8: float


@kept(INT8_CACHE_BYTES, key=models.key, size=lambda model: model.n_bytes)
def int8(name: str) -> Int8Transformer:
    """The core of a model with its matrices in 8 bits; errors as of `models.get`."""
    from attention_core.quantized.int8 import Int8Transformer

    return Int8Transformer(models.get(name).core)


def core(name: str, weights: Weights) -> Transformer:
    """The core of a model with its weights in this form; errors as of `models.get`."""
    return int8(name) if weights == "int8" else models.get(name).core


@kept(SMALL_CACHE_BYTES, key=models.key, size=lambda price: 500)
def price(name: str) -> Price:
    """What a decoder pays for 8 bits.

    Raises: ValueError for an encoder, which has no next token; errors as of `models.get`.
    """
    import torch

    model = models.get(name)
    if model.spec.role != "decoder":
        raise ValueError(f"{model.spec.title} writes no text")
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids[: model.core.config.context_length]])
    plain, rounded = (_logits(core, ids) for core in (model.core, int8(name)))
    return Price(
        n_bytes=sum(p.numel() * p.element_size() for p in model.core.parameters()),
        n_bytes_int8=int8(name).n_bytes,
        n_tokens=len(plain) - 1,
        largest_difference=float((plain - rounded)[:-1].abs().max()),
        n_equal=int((plain.argmax(-1) == rounded.argmax(-1))[:-1].sum()),
        perplexity=_perplexity(plain, ids[0]),
        perplexity_int8=_perplexity(rounded, ids[0]),
    )


def _logits(core: Transformer, ids: Tensor) -> Tensor:
    """(1, T) -> (T, V) in float32, a few tokens at a time behind a cache."""
    import torch

    cache = core.new_cache(1, ids.shape[1])
    device = next(core.parameters()).device
    parts = []
    for few in torch.split(ids.to(device), _CHUNK, dim=1):
        with turns.turn(), torch.inference_mode():
            logits = core(few, cache=cache).logits
        assert logits is not None  # of a decoder
        parts.append(logits[0].float().cpu())
    return torch.cat(parts)


def _perplexity(logits: Tensor, ids: Tensor) -> float:
    from torch.nn.functional import cross_entropy

    return math.exp(float(cross_entropy(logits[:-1], ids[1:])))
