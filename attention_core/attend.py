"""Attention itself, as all models use it: scores, masking, scaling, softmax, the weighted sum.

The steps are small pure functions, in the order of the lectures: scores, mask, scale, softmax,
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
from attention_core.display import ShowsShapes


@dataclass(frozen=True, repr=False)
class AttentionRecord(ShowsShapes):
    """Every intermediate of one attention call, in the order in which they were computed.

    Shapes: B batch, H query heads, H_kv key/value heads, T queries, S keys, D head size.
    Where there are no heads (the first rungs of the ladder) H and H_kv are missing.

    Invariants: every row of `attention` sums to 1 (to 0 where a query may see no key);
    `weights` is `attention` unless dropout was active; `context == weights @ v`. A step that a
    caller replaced (`Hooks.edit_heads`) is what the later steps were computed from, and may differ.
    """

    q: Tensor  # (B, H, T, D)
    k: Tensor  # (B, H_kv, S, D)
    v: Tensor  # (B, H_kv, S, D)
    scores: Tensor  # (B, H, T, S)  q . k
    masked_scores: Tensor  # (B, H, T, S)  -inf where the query may not look
    scaled_scores: Tensor  # (B, H, T, S)  masked scores times scale
    attention: Tensor  # (B, H, T, S)  softmax over the keys
    weights: Tensor  # (B, H, T, S)  after dropout: what the values are mixed with
    context: Tensor  # (B, H, T, D)
    scale: float
    output: Tensor | None = None  # (B, T, C)  heads merged and projected, where a layer does so
    # (B, T, (H + 2 H_kv) * D)  what q, k and v are split from, before rotary positions, where a
    # model's layer has made them with one product
    projected: Tensor | None = None

    @property
    def added(self) -> Tensor:
        """What a layer adds to the residual stream: its `output` (B, T, C).

        Raises: ValueError for heads that were not merged and projected.
        """
        if self.output is None:
            raise ValueError("this record is of heads alone: nothing was projected")
        return self.output


# A change to the heads of a layer before they are merged and projected: the number of the layer and
# its record go in, the record to continue with comes out. None changes nothing.
Edit = Callable[[int, AttentionRecord], AttentionRecord | None]


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """Dot products of queries and keys, q @ k^T: (..., T, D) and (..., S, D) -> (..., T, S).

    With fewer key heads than query heads: (B, H, T, D) and (B, H_kv, S, D) -> (B, H, T, S).
    """
    return unfold_groups(fold_groups(q, k) @ k.transpose(-2, -1), q)  # [scores]


def mask_scores(scores: Tensor, mask: Tensor, fill: float = -math.inf) -> Tensor:
    """Overwrite the scores that `mask` forbids (`False`) with `fill`; shapes broadcast.

    Minus infinity becomes an exact zero in the softmax. Any other fill (the article's 0.0) leaks:
    the softmax gives a forbidden key exp(fill) of the weight.
    """
    return scores.masked_fill(~mask, fill)  # [masked]


def attention_weights(scaled_scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys: (..., T, S) -> (..., T, S).

    Computed in float32 for the 16-bit types. A query that may see no key at all gets a row of
    zeros instead of 0/0.
    """
    # [softmax]
    weights = torch.softmax(scaled_scores, dim=-1, dtype=_softmax_dtype(scaled_scores.dtype))
    if mask is not None:
        weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return weights.to(scaled_scores.dtype)


def mix_values(weights: Tensor, v: Tensor) -> Tensor:
    """The weighted sums of the values, weights @ v: (..., T, S) and (..., S, D) -> (..., T, D).

    With fewer value heads than query heads: (B, H, T, S) and (B, H_kv, S, D) -> (B, H, T, D).
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
    """Scaled dot-product attention with every intermediate kept.

    Fewer key/value heads than query heads are allowed (grouped-query attention): query head `h`
    reads key/value head `h // (H // H_kv)`, the order of Llama. Keys and values are not repeated.

    Shapes: q (B, H, T, D); k (B, H_kv, S, D); v (B, H_kv, S, D_v); mask broadcasts to
    (B, H, T, S), `True` where a query may look. All also work without B and H.
    Arguments: `scale` multiplies the scores, 1/sqrt(D) by default; `dropout_p` drops weights with
    this probability and scales the kept ones by 1/(1-p).
    Raises: ValueError for head counts or sizes that do not fit or are 0, a mask that is not bool or
    does not broadcast, a `scale` that is not positive and finite, or `dropout_p` outside [0, 1].
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
    """The context of `attend` alone, with torch's fused function: no (T, S) tensor is kept.

    Shapes and errors as of `attend`; (B, H, T, D_v).
    """
    if mask is not None and mask.dim() > 2:  # padding may leave a query without any key
        return attend(q, k, v, mask=mask, scale=scale).context
    _check(q, k, v, mask, scale, dropout_p=0.0)
    grouped = q.dim() >= 3 and q.shape[-3] != k.shape[-3]
    return nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped
    )


# The steps of `attend` after q, k and v, in order: what each one reads, and how it is computed
# from a record and the mask. Dropout is missing: an edited pass has none.
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
    """Compute again the steps of an edited record that follow from what the edit replaced.

    A field counts as replaced if it's another object than in `original`. A step that was replaced
    itself stays as it is, so that a record whose later steps are all replaced comes back unchanged.
    `mask` is the one that `original` was computed with; it's applied again. Weights are computed
    without dropout.
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
    """Stack the rows of the G query heads that share a key/value head: one product for all of them.

    No key is copied: (B, H, T, X) for `shared` (B, H_kv, ...) -> (B, H_kv, G*T, X), G = H // H_kv.
    Where no head shares, or there are no heads, the rows come back as they are.
    """
    if rows.dim() < 3 or rows.shape[-3] == shared.shape[-3]:
        return rows
    return rows.reshape(*rows.shape[:-3], shared.shape[-3], -1, rows.shape[-1])


def unfold_groups(product: Tensor, q: Tensor) -> Tensor:
    """Undo `fold_groups` on a product of its rows: (B, H_kv, G*T, Y) -> (B, H, T, Y)."""
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
