"""Size of a model's KV cache, the cost of reading it, and what fits in memory.

Plain arithmetic on published sizes. It ignores the unused ends of memory blocks in servers
(paging), the scales of a quantized cache, prompts shared by requests, and the encoder side of
encoder-decoder models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attention_core.costs.formulas import kv_cache_bytes, mla_cache_bytes
from attention_core.costs.public_models import PublicModel


@dataclass(frozen=True)
class CachePart:
    """Layers of a model whose caches have the same size.

    `n_tokens` of each sequence are stored, as `n_values` numbers each: twice (for key and value)
    the key/value heads times the head size, or a latent and a rotary key.
    """

    n_layers: int
    n_tokens: int
    n_values: int
    n_bytes: int
    window: int | None = None


def cache_parts(
    model: PublicModel, n_tokens: int, *, batch_size: int = 1, bytes_per_value: int = 2
) -> tuple[CachePart, ...]:
    """Cache sizes for `batch_size` sequences of `n_tokens`, global layers first.

    Raises: ValueError with the number for an argument below 1.
    """
    if model.latent_size is not None and model.rope_size is not None:
        size = mla_cache_bytes(
            n_layers=model.n_layers,
            latent_size=model.latent_size,
            rope_size=model.rope_size,
            n_tokens=n_tokens,
            batch_size=batch_size,
            bytes_per_value=bytes_per_value,
        )
        n_values = model.latent_size + model.rope_size
        return (CachePart(model.n_layers, n_tokens, n_values, size),)
    n_global = model.n_layers if model.window is None else model.n_global_layers
    parts = []
    for n_layers, window in ((n_global, None), (model.n_layers - n_global, model.window)):
        if n_layers:
            size = kv_cache_bytes(
                n_layers=n_layers,
                n_kv_heads=model.n_kv_heads,
                head_size=model.head_size,
                n_tokens=n_tokens,
                batch_size=batch_size,
                bytes_per_value=bytes_per_value,
                window=window,
            )
            kept = n_tokens if window is None else min(n_tokens, window)
            n_values = 2 * model.n_kv_heads * model.head_size
            parts.append(CachePart(n_layers, kept, n_values, size, window))
    return tuple(parts)


def cache_bytes(
    model: PublicModel, n_tokens: int, *, batch_size: int = 1, bytes_per_value: int = 2
) -> int:
    """Bytes of the KV cache for `batch_size` sequences of `n_tokens`.

    Raises: ValueError with the number for an argument below 1.
    """
    parts = cache_parts(model, n_tokens, batch_size=batch_size, bytes_per_value=bytes_per_value)
    return sum(part.n_bytes for part in parts)  # [total bytes]


def weight_bytes(n_parameters: int, bits: int) -> int:
    """Bytes of parameters with `bits` each, without the scales of 4-bit formats.

    Raises: ValueError with the number for an argument below 1.
    """
    if n_parameters < 1 or bits < 1:
        raise ValueError(f"{n_parameters} parameters of {bits} bits: both must be at least 1")
    return math.ceil(n_parameters * bits / 8)


def max_sequences(
    model: PublicModel, n_free: int, n_tokens: int, *, bytes_per_value: int = 2
) -> int:
    """Number of sequences of `n_tokens` whose caches fit in `n_free` bytes.

    Raises: ValueError with the number for a size below 1; `n_free` may be negative.
    """
    return max(n_free, 0) // cache_bytes(model, n_tokens, bytes_per_value=bytes_per_value)


def max_context(
    model: PublicModel, n_free: int, *, batch_size: int = 1, bytes_per_value: int = 2
) -> int | None:
    """The most tokens that each of `batch_size` sequences can have in `n_free` bytes.

    None means no limit, because every layer has a window and all windows fit.
    Raises: ValueError with the number for a size below 1; `n_free` may be negative.
    """
    settings = {"batch_size": batch_size, "bytes_per_value": bytes_per_value}
    n_free = max(n_free, 0)
    within = n_free // cache_bytes(model, 1, **settings)
    if model.window is None or within < model.window:
        return within
    # all windows are full, so only global layers still grow
    full = cache_bytes(model, model.window, **settings)
    per_token = cache_bytes(model, model.window + 1, **settings) - full
    return model.window + (n_free - full) // per_token if per_token else None


@dataclass(frozen=True)
class TokenCost:
    """The cost of generating one more token after `n_tokens`.

    A multiply-add counts as two operations. Bytes are read from memory: the weights, shared by the
    sequences of the batch, and the sequence's own cache.
    """

    n_tokens: int
    weight_operations: int
    attention_operations: int
    weight_bytes: float
    cache_bytes: int


def token_cost(
    model: PublicModel,
    n_tokens: int,
    *,
    batch_size: int = 1,
    bytes_per_value: int = 2,
    weight_bits: int = 16,
) -> TokenCost:
    """Operations and bytes read per generated token and sequence.

    `batch_size` sequences share the weights. Each head computes the dot products of its query with
    the cached keys and the weighted sum of the cached values. Latent attention is counted in its
    absorbed form, which reads the latents directly: the query is multiplied by the latent and the
    rotary key, and the weights by the latent. For a mixture of experts, the tokens of a batch are
    assumed to use different experts, up to all of them.
    Source: 2 operations per parameter and token, https://arxiv.org/abs/2001.08361, section 2.1.
    Raises: ValueError with the number for an argument below 1.
    """
    parts = cache_parts(model, n_tokens, bytes_per_value=bytes_per_value)
    if model.latent_size is not None and model.rope_size is not None:
        multiplied = 2 * model.latent_size + model.rope_size
    else:
        multiplied = 2 * model.head_size
    kept_tokens = sum(part.n_layers * part.n_tokens for part in parts)  # [cached tokens]
    # [parameters read]
    parameters_read = min(model.n_parameters, batch_size * model.active_parameters)
    return TokenCost(
        n_tokens=n_tokens,
        weight_operations=2 * model.active_parameters,
        attention_operations=2 * kept_tokens * model.n_heads * multiplied,
        weight_bytes=weight_bytes(parameters_read, weight_bits) / batch_size,
        cache_bytes=sum(part.n_bytes for part in parts),
    )


def growth_exponent(sizes: Sequence[float], amounts: Sequence[float]) -> float:
    """The exponent with which `amounts` grow with `sizes`, from a log-log fit.

    1 means proportional growth, 2 quadratic.
    Raises: ValueError unless both have the same number of positive values, with at least two sizes.
    """
    if len(sizes) != len(amounts) or min(*sizes, *amounts, 1.0) <= 0 or len(set(sizes)) < 2:
        raise ValueError(
            f"can't fit {len(sizes)} sizes to {len(amounts)} amounts: use different, positive ones"
        )
    x, y = ([math.log(value) for value in values] for values in (sizes, amounts))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
