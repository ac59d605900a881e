"""Multi-head attention as a PyTorch module; this is the one to import.

It does self-attention, or cross-attention if you pass a `memory`, and every model in this project
uses it. The classes that the lectures build step by step are in `attention_core.ladder`, with the
lectures' names.

Dimension letters: B batch, T new tokens, S all keys (cached and new), H query heads,
H_kv key/value heads, D head size, C width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord, attend, fused_context
from attention_core.cache import KVCache
from attention_core.checks import require_int
from attention_core.heads import merge_heads, split_heads
from attention_core.masks import causal_mask
from attention_core.model.layers import Projection
from attention_core.positions.rotary import Rotation, rotary_angles, rotate

Attend = Callable[..., AttentionRecord]


@dataclass
class Watch:
    """Observer of one attention call: computes the heads and receives the record.

    attend: used instead of `attention_core.attend`, for example to edit the heads.
    record: set by the call.
    """

    attend: Attend = attend
    record: AttentionRecord | None = None


class MultiHeadAttention(nn.Module):
    """Attention with H query heads: (B, T, C) -> (B, T, C).

    Fewer key/value heads make it grouped-query attention, and a single one multi-query attention:
    query head h reads key/value head h // (H // H_kv).

    Args:
        d_model: width C of the input and the output.
        n_heads: number of query heads H.
        n_kv_heads: number of key/value heads H_kv, by default H.
        head_size: D, by default C / H.
        causal: whether a position can see only itself and earlier positions.
        bias: whether the projections have a bias.
        rope_theta: base of the rotary positions, or None for no positions.
        dropout: dropout probability of the weights during training.
        scale: factor for the scores, 1/sqrt(D) by default.
        layer: index of this layer in a cache that several layers share.

    Raises: ValueError with the numbers if the sizes don't fit together.

    >>> attention = MultiHeadAttention(64, 8, n_kv_heads=2, causal=True, rope_theta=10_000.0)
    >>> cache = attention.new_cache(batch_size=1, max_length=16)
    >>> prompt, token = torch.randn(1, 5, 64), torch.randn(1, 1, 64)
    >>> attention(prompt, cache=cache).shape, attention(token, cache=cache).shape
    (torch.Size([1, 5, 64]), torch.Size([1, 1, 64]))
    >>> cache.length
    6
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        head_size: int | None = None,
        causal: bool = False,
        bias: bool = True,
        rope_theta: float | None = None,
        dropout: float = 0.0,
        scale: float | None = None,
        layer: int = 0,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        _check_sizes(d_model, n_heads, n_kv_heads, head_size, rope_theta, dropout)
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.head_size = d_model // n_heads if head_size is None else head_size
        self.causal, self.rope_theta = causal, rope_theta
        self.dropout, self.scale, self.layer = dropout, scale, layer
        # queries, keys and values in one matrix: one product instead of three
        self.qkv = Projection(d_model, sum(self.widths), bias)
        self.out = Projection(n_heads * self.head_size, d_model, bias)

    @property
    def widths(self) -> tuple[int, int, int]:
        """Column counts of queries, keys and values in `qkv`: H*D, H_kv*D, H_kv*D."""
        kv_width = self.n_kv_heads * self.head_size
        return self.n_heads * self.head_size, kv_width, kv_width

    def forward(
        self,
        x: Tensor,
        *,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        positions: Tensor | Rotation | None = None,
        cache: KVCache | None = None,
        watch: Watch | None = None,
    ) -> Tensor:
        """Attend to x itself, or to `memory`: (B, T, C) -> (B, T, C).

        Args:
            x: input (B, T, C).
            memory: (B, S, C), the source of keys and values in cross-attention.
            mask: bool, `True` where a query may see a key; broadcasts to (B, H, T, S). A causal
                module applies its causal mask as well.
            positions: (T) or (B, T), positions of the new tokens; by default they follow the cached
                ones. To share the angles between layers, pass a `rotary_angles` result instead.
            cache: stores the new keys and values and returns all of them.
            watch: receives the record of this call. Without it, PyTorch's fused attention is used
                and the scores aren't stored.

        Raises: ValueError if shapes don't match, or if both a memory and a cache are given.
        """
        check_inputs(self, x, memory, cache)
        projected, (q, k, v) = self._project(x, memory)
        q = split_heads(q, self.n_heads)  # [queries] (B, T, H*D) -> (B, H, T, D)
        k = split_heads(k, self.n_kv_heads)  # [keys] (B, S, H_kv*D) -> (B, H_kv, S, D)
        v = split_heads(v, self.n_kv_heads)  # [values]
        rotation = rotation_for(self, x, positions, cache, self.head_size)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)  # [rotated]
        if cache is not None:  # (B, H_kv, T, D) -> (B, H_kv, S, D)
            k, v = cache.update(self.layer, k, v)
        mask = mask_for(self, q.shape[2], k.shape[2], mask, x.device)
        dropout = self.dropout if self.training else 0.0
        context, record = attend_heads(q, k, v, mask, self.scale, dropout, watch)  # [context]
        # [output]
        output: Tensor = self.out(merge_heads(context))  # (B, H, T, D) -> (B, T, H*D) -> (B, T, C)
        if watch is not None and record is not None:
            watch.record = replace(record, projected=projected, output=output)
        return output

    def record(self, x: Tensor, **options: Any) -> AttentionRecord:
        """Run `forward` and return every intermediate; `output` is the return value."""
        return record_forward(self, x, **options)

    def new_cache(self, batch_size: int, max_length: int) -> KVCache:
        """An empty cache for this one layer, with its sizes, dtype and device."""
        shape = (self.n_kv_heads, self.head_size)
        return cache_for(self, batch_size, max_length, shape, shape)

    def out_weight(self) -> Tensor:
        """The output matrix W_O that projects the merged heads: (H*D, C)."""
        return self.out.matrix

    def _project(
        self, x: Tensor, memory: Tensor | None
    ) -> tuple[Tensor | None, tuple[Tensor, ...]]:
        """The shared projection, if there is one, and q, k, v before the head split.

        Shapes: queries (B, T, H*D), keys and values (B, S, H_kv*D). With a memory, queries come
        from a different input, so the shared projection is None.
        """
        if memory is None:
            projected = self.qkv(x)  # [projection]
            return projected, projected.split(self.widths, dim=-1)
        q_width, kv_widths = self.widths[0], self.widths[1:]
        weight, bias = self.qkv.weight, self.qkv.bias  # (d_out, d_in)
        of_q = None if bias is None else bias[:q_width]
        of_kv = None if bias is None else bias[q_width:]
        k, v = nn.functional.linear(memory, weight[q_width:], of_kv).split(kv_widths, dim=-1)
        return None, (nn.functional.linear(x, weight[:q_width], of_q), k, v)


# Shared with `LatentAttention`.


def attend_heads(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    scale: float | None,
    dropout_p: float,
    watch: Watch | None,
) -> tuple[Tensor, AttentionRecord | None]:
    """The context of every head (B, H, T, D), and the record if there is a watch."""
    if watch is None and not dropout_p:
        return fused_context(q, k, v, mask=mask, scale=scale), None
    compute = attend if watch is None else watch.attend
    record = compute(q, k, v, mask=mask, scale=scale, dropout_p=dropout_p)
    return record.context, record


def rotation_for(
    module: Any,
    x: Tensor,
    positions: Tensor | Rotation | None,
    cache: KVCache | None,
    head_size: int,
) -> Rotation | None:
    """The rotation of the new tokens, or None for a module without rotary positions."""
    if isinstance(positions, tuple):
        return positions
    if module.rope_theta is None:
        return None
    if positions is None:
        start = 0 if cache is None else cache.length
        positions = torch.arange(start, start + x.shape[1], device=x.device)
    return rotary_angles(positions, head_size, module.rope_theta, x.dtype)


def mask_for(
    module: Any, n_new: int, n_keys: int, mask: Tensor | None, device: torch.device
) -> Tensor | None:
    """Combine the caller's mask with the module's causal mask."""
    if not module.causal or n_new == 1:  # the last position sees every key
        return mask
    rule = causal_mask(n_new, n_keys, device=device)
    return rule if mask is None else mask & rule


def record_forward(module: Any, x: Tensor, **options: Any) -> AttentionRecord:
    """Call the module and return its record, with forward hooks applied to `output`."""
    watch = Watch()
    output = module(x, **options, watch=watch)
    assert watch.record is not None  # every call with a watch sets it
    return replace(watch.record, output=output)


def cache_for(
    module: nn.Module,
    batch_size: int,
    max_length: int,
    key_shape: tuple[int, int],
    value_shape: tuple[int, int],
) -> KVCache:
    """An empty one-layer cache with the dtype and device of the module's weights."""
    weight = next(module.parameters())
    return KVCache(
        1,
        batch_size,
        max_length,
        key_shape=key_shape,
        value_shape=value_shape,
        dtype=weight.dtype,
        device=weight.device,
    )


def check_inputs(module: Any, x: Tensor, memory: Tensor | None, cache: KVCache | None) -> None:
    """Raise ValueError for inputs of the wrong width, or a memory that isn't allowed."""
    for name, states in (("x", x), ("memory", memory)):
        if states is not None and (states.dim() != 3 or states.shape[2] != module.d_model):
            raise ValueError(
                f"{name} must be (batch, tokens, {module.d_model}), got {tuple(states.shape)}"
            )
    if memory is None:
        return
    if cache is not None:
        raise ValueError("a cache stores keys and values of x: it can't be used with a memory")
    if module.causal or module.rope_theta is not None:
        raise ValueError(
            "attention to a memory can't be causal or use rotary positions, "
            f"got causal={module.causal} and rope_theta={module.rope_theta}"
        )


def _check_sizes(
    d_model: int,
    n_heads: int,
    n_kv_heads: int,
    head_size: int | None,
    rope_theta: float | None,
    dropout: float,
) -> None:
    sizes = [("d_model", d_model), ("n_heads", n_heads), ("n_kv_heads", n_kv_heads)]
    for name, size in sizes + ([] if head_size is None else [("head_size", head_size)]):
        require_int(name, size)
    if head_size is None and d_model % n_heads:
        raise ValueError(
            f"d_model ({d_model}) must be divisible by n_heads ({n_heads}), or pass head_size"
        )
    if n_heads % n_kv_heads:
        raise ValueError(f"n_heads ({n_heads}) must be divisible by n_kv_heads ({n_kv_heads})")
    if rope_theta is not None and (head_size or d_model // n_heads) % 2:
        raise ValueError(
            f"rotary positions need an even head size, got {head_size or d_model // n_heads}"
        )
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
