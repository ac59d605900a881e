"""Scaled dot-product attention, the one function that every model here uses.

Each step is a small pure function, in the order of the lectures: scores, mask, scale, softmax,
dropout, weighted sum (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, equation 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_core.checks import require_positive
from attention_core.display import ShapeReprMixin


@dataclass(frozen=True, repr=False)
class AttentionRecord(ShapeReprMixin):
    """All intermediate tensors of one attention call, in the order they're computed.

    Dimension letters: B batch, H query heads, H_kv key/value heads, T queries, S keys, D head size.
    The first rungs of the ladder have no heads, so their tensors lack H and H_kv.

    Invariants: every row of `attention` sums to 1, or to 0 if the query can't see any key.
    `weights` equals `attention` unless dropout is active, and `context == weights @ v`.
    `Hooks.edit_heads` can break these invariants, because it may replace any step.
    """

    q: Tensor  # (B, H, T, D)
    k: Tensor  # (B, H_kv, S, D)
    v: Tensor  # (B, H_kv, S, D)
    scores: Tensor  # (B, H, T, S)  q @ k^T
    masked_scores: Tensor  # (B, H, T, S)  -inf where a key is hidden
    scaled_scores: Tensor  # (B, H, T, S)  masked_scores * scale
    attention: Tensor  # (B, H, T, S)  softmax over the keys
    weights: Tensor  # (B, H, T, S)  attention after dropout
    context: Tensor  # (B, H, T, D)
    scale: float
    output: Tensor | None = None  # (B, T, C)  merged and projected heads, if the layer projects
    # (B, T, (H + 2 H_kv) * D)  q, k and v before the split and before rotary positions; None unless
    # one matrix product computed all three
    projected: Tensor | None = None

    @property
    def added(self) -> Tensor:
        """The layer's `output` (B, T, C), which is added to the residual stream.

        Raises: ValueError if the heads weren't merged and projected.
        """
        if self.output is None:
            raise ValueError("this record has no output: its heads weren't merged and projected")
        return self.output


# Edits the heads of a layer before they're merged and projected. Takes the layer's index and its
# record, and returns the record to continue with, or None to leave it unchanged.
Edit = Callable[[int, AttentionRecord], AttentionRecord | None]


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """Dot products of queries and keys: (..., T, D) and (..., S, D) -> (..., T, S).

    Grouped-query attention: (B, H, T, D) and (B, H_kv, S, D) -> (B, H, T, S).
    """
    return unfold_groups(fold_groups(q, k) @ k.transpose(-2, -1), q)  # [scores]


def mask_scores(scores: Tensor, mask: Tensor, fill: float = -math.inf) -> Tensor:
    """Replace the scores that `mask` hides (`False`) with `fill`; shapes broadcast.

    Minus infinity gives a weight of exactly 0 after the softmax. Any other fill, such as the
    article's 0.0, leaks: the hidden key keeps a share of the weight proportional to exp(fill).
    """
    return scores.masked_fill(~mask, fill)  # [masked]


def attention_weights(scaled_scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys: (..., T, S) -> (..., T, S).

    16-bit scores are computed in float32 and converted back. If `mask` hides every key from a
    query, its row is all zeros instead of NaN.
    """
    # [softmax]
    weights = torch.softmax(scaled_scores, dim=-1, dtype=_softmax_dtype(scaled_scores.dtype))
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights.to(scaled_scores.dtype)


def mix_values(weights: Tensor, v: Tensor) -> Tensor:
    """Weighted sums of the values: (..., T, S) and (..., S, D) -> (..., T, D).

    Grouped-query attention: (B, H, T, S) and (B, H_kv, S, D) -> (B, H, T, D).
    """
    return unfold_groups(fold_groups(weights, v) @ v, weights)  # [context]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> AttentionRecord:
    """Scaled dot-product attention that returns every intermediate tensor.

    Supports grouped-query attention: query head `h` reads key/value head `h // (H // H_kv)`, as in
    Llama. Keys and values aren't copied for it.

    Args:
        q: queries (B, H, T, D). B and H can be left out of all tensors.
        k: keys (B, H_kv, S, D).
        v: values (B, H_kv, S, D_v).
        mask: bool, `True` where a query may see a key; broadcasts to (B, H, T, S).
        scale: factor for the scores, 1/sqrt(D) by default.
        dropout_p: probability of dropping a weight. The others are scaled by 1/(1 - dropout_p).

    Raises: ValueError if head counts or sizes don't match or are 0, if `mask` isn't bool or doesn't
    broadcast, if `scale` isn't positive and finite, or if `dropout_p` isn't in [0, 1].
    """
    _check(q, k, v, mask, scale, dropout_p)
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = attention_scores(q, k)  # q @ k^T, (B, H, T, S)
    masked = scores if mask is None else mask_scores(scores, mask)  # [masked]
    scaled = masked * scale  # [scaled]
    attention = attention_weights(scaled, mask)  # [softmax]
    weights = nn.functional.dropout(attention, dropout_p) if dropout_p else attention  # [weights]
    context = mix_values(weights, v)  # weights @ v, (B, H, T, D_v)
    return AttentionRecord(q, k, v, scores, masked, scaled, attention, weights, context, scale)


def fused_context(
    q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, scale: float | None = None
) -> Tensor:
    """The context of `attend`, computed by PyTorch's fused attention.

    Faster, and no (T, S) tensor is stored. Arguments and errors as in `attend`.
    Returns (B, H, T, D_v).
    """
    if mask is not None and mask.dim() > 2:  # padding may hide every key from a query
        return attend(q, k, v, mask=mask, scale=scale).context
    _check(q, k, v, mask, scale, dropout_p=0.0)
    grouped = q.dim() >= 3 and q.shape[-3] != k.shape[-3]
    return nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped
    )


# The steps of `attend` after q, k and v, in order: the fields a step reads, and a function that
# computes it from a record and the mask. Edited passes don't use dropout.
_STEPS: dict[str, tuple[set[str], Callable[[AttentionRecord, Tensor | None], Tensor]]] = {
    "scores": ({"q", "k"}, lambda r, mask: attention_scores(r.q, r.k)),
    "masked_scores": (
        {"scores"},
        lambda r, mask: r.scores if mask is None else mask_scores(r.scores, mask),
    ),
    "scaled_scores": ({"masked_scores", "scale"}, lambda r, mask: r.masked_scores * r.scale),
    "attention": ({"scaled_scores"}, lambda r, mask: attention_weights(r.scaled_scores, mask)),
    "weights": ({"attention"}, lambda r, mask: r.attention),
    "context": ({"weights", "v"}, lambda r, mask: mix_values(r.weights, r.v)),
}


def recompute_after(
    edited: AttentionRecord, original: AttentionRecord, mask: Tensor | None = None
) -> AttentionRecord:
    """Recompute every step that depends on something an edit replaced.

    A field counts as replaced if it's a different object than in `original`. Replaced fields are
    kept, so a record in which every later step is replaced comes back unchanged. `mask` must be the
    mask that `original` was computed with. Weights are recomputed without dropout.
    """
    fields = ("q", "k", "v", "scale", *_STEPS)
    new = {name for name in fields if getattr(edited, name) is not getattr(original, name)}
    for name, (reads, compute) in _STEPS.items():
        if name not in new and reads & new:
            step: dict[str, Any] = {name: compute(edited, mask)}
            edited = replace(edited, **step)
            new.add(name)
    return edited


def fold_groups(rows: Tensor, shared: Tensor) -> Tensor:
    """Stack the G query heads that share a key/value head, so one product handles all.

    Shapes: rows (B, H, T, X), shared (B, H_kv, ...) -> (B, H_kv, G*T, X) with G = H // H_kv. Keys
    aren't copied. If every head has its own keys, or there are no heads, `rows` is returned
    unchanged.
    """
    if rows.dim() < 3 or rows.shape[-3] == shared.shape[-3]:
        return rows
    return rows.reshape(*rows.shape[:-3], shared.shape[-3], -1, rows.shape[-1])


def unfold_groups(product: Tensor, q: Tensor) -> Tensor:
    """Undo `fold_groups` on a product: (B, H_kv, G*T, Y) -> (B, H, T, Y)."""
    if product.shape[-2] == q.shape[-2]:
        return product
    return product.view(*q.shape[:-1], product.shape[-1])


def _softmax_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _check(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None, dropout_p: float
) -> None:
    same = q.dim() == k.dim() == v.dim() >= 2 and q.shape[:-3] == k.shape[:-3]
    if not same or k.shape[:-2] != v.shape[:-2] or 0 in (*q.shape, *k.shape, *v.shape):
        raise ValueError(
            "queries, keys and values need the same batch, keys and values the same heads, and no "
            f"size may be 0: got q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
        )
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries have size {q.shape[-1]} but keys have size {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"there are {k.shape[-2]} keys but {v.shape[-2]} values")
    if q.dim() >= 3 and q.shape[-3] % k.shape[-3]:
        raise ValueError(
            f"{q.shape[-3]} query heads cannot share {k.shape[-3]} key/value heads evenly"
        )
    if scale is not None:
        require_positive("scale", scale)
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"dropout_p must be between 0 and 1, got {dropout_p}")
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool (True where a query may look), got {mask.dtype}")
    expected = (*q.shape[:-1], k.shape[-2])
    sizes = zip(reversed(mask.shape), reversed(expected), strict=False)
    if mask.dim() > len(expected) or any(size not in (1, whole) for size, whole in sizes):
        raise ValueError(f"mask {tuple(mask.shape)} does not broadcast to the scores {expected}")
