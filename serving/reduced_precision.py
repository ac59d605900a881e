"""Models with weights in 8 or 16 bits, and the effect of the rounding."""

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

# The effect is measured on plain prose that no model was trained on.
TEXT = (
    "The harbour was quiet when Mara unlocked the office. Two boats had come in during the night, "
    "and their nets hung over the rail like wet curtains. She put the kettle on, opened the ledger "
    "and wrote down the date, the weather and the names of both captains. Outside, a gull walked "
    "along the wall as if it were waiting for somebody. At nine the telephone rang. It was the "
    "school: her son had forgotten his lunch again, and could she bring it before noon? She said "
    "that she could, laughed, and closed the ledger. The kettle had boiled dry."
)
_CHUNK = 8  # tokens per pass: so few that they're rounded as in a decode step


@dataclass(frozen=True)
class PrecisionCost:
    """The bytes saved by fewer bits, and the loss of accuracy on `TEXT`.

    n_bytes, n_bytes_rounded: size of all weights. n_tokens: the number of predictions compared.
    largest_difference: between two logits. n_equal: how often both predict the same token.
    perplexity, perplexity_rounded: e to the power of the mean surprise at the actual next token.
    """

    n_bytes: int
    n_bytes_rounded: int
    n_tokens: int
    largest_difference: float
    n_equal: int
    perplexity: float
    perplexity_rounded: float


def has_gpu() -> bool:
    """Whether models run on a GPU; avoids importing torch if the machine has none."""
    if not gpu.is_available() and "torch" not in sys.modules:
        return False

    import torch

    return torch.cuda.is_available()


def weight_formats() -> list[Weights]:
    """The available formats for weights. bfloat16 needs a GPU: it isn't faster on a CPU."""
    return ["float32", "int8", "bfloat16"] if has_gpu() else ["float32", "int8"]


@cached(cache=MODELS, key=models.key)
def load_int8(name: str) -> Int8Transformer:
    """A model's core with its matrices in 8 bits; errors as in `models.get`."""
    from attention_core.speed.int8 import Int8Transformer

    return Int8Transformer(models.get(name).core)


@cached(cache=MODELS, key=models.key)
def load_bfloat16(name: str) -> Transformer:
    """A model's core with all weights in bfloat16; errors as in `models.get`."""
    return to_bfloat16(models.get(name).core)


def to_bfloat16(model: Transformer) -> Transformer:
    """A copy of a core with all weights in bfloat16."""
    import torch

    return copy.deepcopy(model).to(torch.bfloat16)


def load_core(name: str, weights: Weights) -> Transformer:
    """A model's core with its weights in this format.

    Raises: ValueError for a format that isn't available here; the errors of `models.get`.
    """
    if weights not in weight_formats():
        raise ValueError(
            f"Weights in {weights} need a GPU, and this machine has none. "
            f"Choose {' or '.join(weight_formats())}."
        )
    if weights == "float32":
        return models.get(name).core
    return load_int8(name) if weights == "int8" else load_bfloat16(name)


@cached(key=lambda name, weights: (models.key(name), weights), size=lambda price: 500)
def precision_cost(name: str, weights: Weights) -> PrecisionCost:
    """Compare a decoder with its version in this format.

    Raises: ValueError for an encoder, which doesn't predict next tokens; the errors of `load_core`.
    """
    import torch

    model = models.get(name)
    if model.spec.role != "decoder":
        raise ValueError(f"{model.spec.title} is an encoder and can't generate text")
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids[: model.core.config.context_length]])
    rounded = load_core(name, weights)
    plain, others = (_logits(each, ids) for each in (model.core, rounded))
    return PrecisionCost(
        n_bytes=size_of(model.core),
        n_bytes_rounded=size_of(rounded),
        n_tokens=len(plain) - 1,
        largest_difference=float((plain - others)[:-1].abs().max()),
        n_equal=int((plain.argmax(-1) == others.argmax(-1))[:-1].sum()),
        perplexity=_perplexity(plain, ids[0]),
        perplexity_rounded=_perplexity(others, ids[0]),
    )


def _logits(core: Transformer, ids: Tensor) -> Tensor:
    """Logits of a text, (1, T) -> (T, V) in float32, computed a few tokens at a time."""
    import torch

    cache = core.new_cache(1, ids.shape[1])
    device = next(core.parameters()).device
    parts = []
    for few in torch.split(ids.to(device), _CHUNK, dim=1):
        with compute.slot(), torch.inference_mode():
            logits = core(few, cache=cache).logits
        assert logits is not None  # decoders always have logits
        parts.append(logits[0].float().cpu())
    return torch.cat(parts)


def _perplexity(logits: Tensor, ids: Tensor) -> float:
    from torch.nn.functional import cross_entropy

    return math.exp(float(cross_entropy(logits[:-1], ids[1:])))
