"""Crop a cache to an earlier token and continue with a different text.

Dimension letters: L layers, H_kv key/value heads, N rows of the buffer, D size of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.costs.formulas import forward_flops
from attention_core.model.pass_context import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
    Access,
    RecordingCache,
)


@dataclass(frozen=True)
class CropContinuation:
    """A cache that was cropped and continued with different tokens.

    before, cropped, after: the whole buffers of keys and values, (L, H_kv, N, D), before the crop,
    after it, and after the new tokens. n_before, n_kept, n_after: the lengths at those times.
    nbytes: allocated bytes, which never change. nbytes_used: bytes that hold tokens at the three
    times. access: cache access of the pass over the new tokens. difference: largest logit
    difference over the new tokens from a fresh pass over the whole text without a cache. next_id,
    fresh_id: most likely next token of each pass.
    """

    before: tuple[Tensor, Tensor]
    cropped: tuple[Tensor, Tensor]
    after: tuple[Tensor, Tensor]
    n_before: int
    n_kept: int
    n_after: int
    nbytes: int
    nbytes_used: tuple[int, int, int]
    access: Access
    difference: float
    next_id: int
    fresh_id: int
    flops: int
    fresh_flops: int


def crop_and_continue(
    model: Transformer,
    token_ids: Sequence[int],
    rows: tuple[Tensor, Tensor],
    n_kept: int,
    new_ids: Sequence[int],
    *,
    hooks: Hooks = NO_HOOKS,
) -> CropContinuation:
    """Crop a cache to `n_kept` tokens, run new tokens, and compare with a fresh run.

    token_ids: the stored tokens. rows: their keys and values, (L, H_kv, N, D), as returned by
    `contents`; they're copied into a new cache, which is larger if the new tokens need it.
    Raises: ValueError if no token is kept, none is new, or they don't fit into the context.
    """
    n_before = len(token_ids)
    if not 1 <= n_kept <= n_before:
        raise ValueError(f"cannot crop a cache of {n_before} tokens to {n_kept}")
    if not new_ids:
        raise ValueError("there are no tokens to continue with")
    cache = RecordingCache.for_model(
        model, max(rows[0].shape[2], n_kept + len(new_ids)), keep_all=True
    )
    weight = next(model.parameters())
    for layer in range(cache.n_layers):
        keys, values = (
            buffer[layer, None, :, :n_before].to(weight.device, weight.dtype) for buffer in rows
        )
        cache.update(layer, keys, values)
    before, used = cache.contents(), [cache.nbytes_used]
    cache.crop(n_kept)
    cropped = cache.contents()
    used.append(cache.nbytes_used)
    whole = [*token_ids[:n_kept], *new_ids]
    with torch.inference_mode():
        new = torch.tensor([list(new_ids)], device=weight.device)
        reused = model(new, cache=cache, hooks=hooks).logits
        fresh = model(torch.tensor([whole], device=weight.device), hooks=hooks).logits
    cached_logits, fresh_logits = (
        logits[0, -len(new_ids) :].float().cpu() for logits in (reused, fresh)
    )
    return CropContinuation(
        before=before,
        cropped=cropped,
        after=cache.contents(),
        n_before=n_before,
        n_kept=n_kept,
        n_after=cache.length,
        nbytes=cache.nbytes,
        nbytes_used=(used[0], used[1], cache.nbytes_used),
        access=cache.accesses[-1],
        difference=float((cached_logits - fresh_logits).abs().max()),
        next_id=int(cached_logits[-1].argmax()),
        fresh_id=int(fresh_logits[-1].argmax()),
        flops=forward_flops(model.config, len(new_ids), len(whole), n_logits=len(new_ids)),
        fresh_flops=forward_flops(model.config, len(whole), len(whole), n_logits=len(whole)),
    )
