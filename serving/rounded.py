"""Models with weights in 8 or 16 bits, and what their rounding costs."""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from serving import compute, gpu, models
from serving.cache import MODELS, cached, size_of

if TYPE_CHECKING:
    from torch import Tensor

    from attention_core import Transformer
    from attention_core.speed.int8 import Int8Transformer

Weights = Literal["float32", "int8", "bfloat16"]

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
    """What fewer bits save, and what they cost on `TEXT`, token for token.

    n_bytes, n_bytes_rounded: of all weights. n_tokens: how many next tokens were compared.
    largest_difference: between two logits. n_equal: how often both find the same token likeliest.
    perplexity, perplexity_rounded: e to the mean surprise at the token that comes.
    """

    n_bytes: int
    n_bytes_rounded: int
    n_tokens: int
    largest_difference: float
    n_equal: int
    perplexity: float
    perplexity_rounded: float


def has_gpu() -> bool:
    """Whether models run on a GPU here. Without one, a page need not wait for torch to say so."""
    if not gpu.is_here() and "torch" not in sys.modules:
        return False

    import torch

    return torch.cuda.is_available()


def forms() -> list[Weights]:
    """What weights may be stored in here. A CPU is no faster with bfloat16."""
    return ["float32", "int8", "bfloat16"] if has_gpu() else ["float32", "int8"]


@cached(cache=MODELS, key=models.key)
def int8(name: str) -> Int8Transformer:
    """The core of a model with its matrices in 8 bits; errors as of `models.get`."""
    from attention_core.speed.int8 import Int8Transformer

    return Int8Transformer(models.get(name).core)


@cached(cache=MODELS, key=models.key)
def bfloat16(name: str) -> Transformer:
    """The core of a model with all its numbers in 16 bits; errors as of `models.get`."""
    return in_bfloat16(models.get(name).core)


def in_bfloat16(model: Transformer) -> Transformer:
    """A copy of a core with all its numbers in 16 bits."""
    import torch

    return copy.deepcopy(model).to(torch.bfloat16)


def core(name: str, weights: Weights) -> Transformer:
    """The core of a model with its weights in this form.

    Raises: ValueError for a form that is not offered here; errors as of `models.get`.
    """
    if weights not in forms():
        raise ValueError(
            f"There is no GPU here, and weights in {weights} are for one. "
            f"Choose {' or '.join(forms())}."
        )
    if weights == "float32":
        return models.get(name).core
    return int8(name) if weights == "int8" else bfloat16(name)


@cached(key=lambda name, weights: (models.key(name), weights), size=lambda price: 500)
def price(name: str, weights: Weights) -> Price:
    """What a decoder pays for weights in this form.

    Raises: ValueError for an encoder, which has no next token; errors as of `core`.
    """
    import torch

    model = models.get(name)
    if model.spec.role != "decoder":
        raise ValueError(f"{model.spec.title} writes no text")
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids[: model.core.config.context_length]])
    rounded = core(name, weights)
    plain, others = (_logits(each, ids) for each in (model.core, rounded))
    return Price(
        n_bytes=size_of(model.core),
        n_bytes_rounded=size_of(rounded),
        n_tokens=len(plain) - 1,
        largest_difference=float((plain - others)[:-1].abs().max()),
        n_equal=int((plain.argmax(-1) == others.argmax(-1))[:-1].sum()),
        perplexity=_perplexity(plain, ids[0]),
        perplexity_rounded=_perplexity(others, ids[0]),
    )


def _logits(core: Transformer, ids: Tensor) -> Tensor:
    """(1, T) -> (T, V) in float32, a few tokens at a time behind a cache."""
    import torch

    cache = core.new_cache(1, ids.shape[1])
    device = next(core.parameters()).device
    parts = []
    for few in torch.split(ids.to(device), _CHUNK, dim=1):
        with compute.slot(), torch.inference_mode():
            logits = core(few, cache=cache).logits
        assert logits is not None  # of a decoder
        parts.append(logits[0].float().cpu())
    return torch.cat(parts)


def _perplexity(logits: Tensor, ids: Tensor) -> float:
    from torch.nn.functional import cross_entropy

    return math.exp(float(cross_entropy(logits[:-1], ids[1:])))
