"""Formulas for the bytes of a KV cache and for floating-point operations.

Source: course notes, "KV cache size" (layers x batch x heads x head size x tokens x 2 x bytes).
"""

from __future__ import annotations

from attention_core.checks import require_int
from attention_core.model.config import LatentConfig, TransformerConfig


def kv_cache_bytes(
    *,
    n_layers: int,
    n_kv_heads: int,
    head_size: int,
    n_tokens: int,
    batch_size: int = 1,
    bytes_per_value: int = 2,
    window: int | None = None,
) -> int:
    """Bytes of keys and values in multi-head, grouped-query or multi-query attention.

    window: tokens that a sliding-window layer keeps; None keeps all. Values have 16 bits by
    default.
    Raises: ValueError with the number for an argument below 1.

    >>> kv_cache_bytes(n_layers=12, n_kv_heads=12, head_size=64, n_tokens=1024)
    37748736
    """
    window = n_tokens if window is None else window
    _check(
        n_layers=n_layers,
        n_kv_heads=n_kv_heads,
        head_size=head_size,
        n_tokens=n_tokens,
        batch_size=batch_size,
        bytes_per_value=bytes_per_value,
        window=window,
    )
    stored = min(n_tokens, window)
    return n_layers * batch_size * n_kv_heads * head_size * stored * 2 * bytes_per_value  # [bytes]


def mla_cache_bytes(
    *,
    n_layers: int,
    latent_size: int,
    rope_size: int,
    n_tokens: int,
    batch_size: int = 1,
    bytes_per_value: int = 2,
    window: int | None = None,
) -> int:
    """Bytes of a latent-attention cache: one latent and one rotary key per token.

    `window` as in `kv_cache_bytes`.
    Source: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1.
    Raises: ValueError with the number for an argument below 1.
    """
    window = n_tokens if window is None else window
    _check(
        n_layers=n_layers,
        latent_size=latent_size,
        rope_size=rope_size,
        n_tokens=n_tokens,
        batch_size=batch_size,
        bytes_per_value=bytes_per_value,
        window=window,
    )
    stored = min(n_tokens, window)
    return n_layers * batch_size * (latent_size + rope_size) * stored * bytes_per_value  # [bytes]


def cache_bytes(
    config: TransformerConfig, n_tokens: int, *, batch_size: int = 1, bytes_per_value: int = 2
) -> int:
    """Bytes of a model's cache, from its kind of attention and its window.

    Equals `model.new_cache(batch_size, n_tokens).nbytes`.
    Raises: ValueError with the number for an argument below 1.
    """
    if config.latent is not None:
        return mla_cache_bytes(
            n_layers=config.n_layers,
            latent_size=config.latent.kv_rank,
            rope_size=config.latent.rope_head_size,
            n_tokens=n_tokens,
            batch_size=batch_size,
            bytes_per_value=bytes_per_value,
            window=config.window,
        )
    return kv_cache_bytes(
        n_layers=config.n_layers,
        n_kv_heads=config.kv_heads,
        head_size=config.d_head,
        n_tokens=n_tokens,
        batch_size=batch_size,
        bytes_per_value=bytes_per_value,
        window=config.window,
    )


def forward_flops(config: TransformerConfig, n_new: int, n_keys: int, *, n_logits: int = 1) -> int:
    """Floating-point operations of one forward pass; a multiply-add counts as two.

    Only matrix products are counted; norms, softmax and activations add less than a percent. Every
    query is counted against every key, because masked scores are computed, too. `n_new` tokens (T)
    attend to `n_keys` (S), and logits are computed for `n_logits` rows.
    Raises: ValueError with the number for an argument below 1.
    """
    _check(n_new=n_new, n_keys=n_keys, n_logits=n_logits)
    width, q_width = config.d_model, config.n_heads * config.d_head
    kv_width = config.kv_heads * config.d_head
    feed_forward = feed_forward_products(config)
    if config.latent is None:
        projections = width * (q_width + 2 * kv_width) + q_width * width
        attention = 2 * n_keys * q_width  # q @ k^T and weights @ v, per new token
        layer = n_new * (projections + attention + feed_forward)
    else:
        layer = _latent_products(config, config.latent, n_new, n_keys) + n_new * feed_forward
    vocabulary = 0 if config.output == "none" else width * config.vocab_size * n_logits
    return 2 * (config.n_layers * layer + vocabulary)


def feed_forward_products(config: TransformerConfig) -> int:
    """Multiplications per token in a feed-forward network: 2 matrices, 3 if gated."""
    return (3 if config.gated else 2) * config.d_model * config.d_ff


def _latent_products(
    config: TransformerConfig, latent: LatentConfig, n_new: int, n_keys: int
) -> int:
    """Multiplications in one layer of latent attention, expanded or absorbed."""
    width, rank, heads = config.d_model, latent.kv_rank, config.n_heads
    nope, rope, value = latent.nope_head_size, latent.rope_head_size, latent.v_head_size
    q_in = width if latent.q_rank is None else latent.q_rank
    queries = q_in * heads * (nope + rope) + (0 if latent.q_rank is None else width * q_in)
    projections = queries + width * (rank + rope) + heads * value * width
    if latent.absorbed:  # queries to latent space, contexts back, and long dot products
        carried = heads * rank * (nope + value)
        return n_new * (projections + carried + n_keys * heads * (2 * rank + rope))
    # keys and values of all tokens, including the cached ones
    expanded = n_keys * rank * heads * (nope + value)
    return n_new * (projections + n_keys * heads * (nope + rope + value)) + expanded


def _check(**sizes: int) -> None:
    for name, size in sizes.items():
        require_int(name, size)
