"""`crop` at work: a cache goes back to an earlier token, and another text runs behind it.

Dimension letters: L layers, H_kv key/value heads, N rows of the buffer, D size of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.costs.formulas import forward_flops
from attention_core.model.forward_pass import NO_HOOKS, Hooks
from attention_core.model.transformer import Transformer
from pages.kv_cache.inside_the_cache.experiment.recording_cache import (
    Access,
    RecordingCache,
)


@dataclass(frozen=True)
class Continued:
    """A cache that was cropped and continued with other tokens.

    before, cropped, after: the whole buffers of keys and values, (L, H_kv, N, D), before the crop,
    after it, and after the new tokens have run. n_before, n_kept, n_after: their lengths. nbytes:
    allocated, the same all the time. used: bytes that hold stored tokens at the three moments.
    access: of the pass over the new tokens.
    difference: the largest between its logits and those of a fresh pass over the whole text
    without a cache, for all new tokens. next_id, fresh_id: the likeliest next token of each.
    """

    before: tuple[Tensor, Tensor]
    cropped: tuple[Tensor, Tensor]
    after: tuple[Tensor, Tensor]
    n_before: int
    n_kept: int
    n_after: int
    nbytes: int
    used: tuple[int, int, int]
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
) -> Continued:
    """Crop a cache to `n_kept` tokens, run other tokens behind them, and compare with a fresh run.

    token_ids: the tokens whose rows are stored. rows: their keys and values, (L, H_kv, N, D), as
    `contents` gives them; they are put into a new cache, larger where the new tokens need it.
    Raises: ValueError for nothing kept, nothing new, or more than the context holds.
    """
    n_before = len(token_ids)
    if not 1 <= n_kept <= n_before:
        raise ValueError(f"cannot crop a cache of {n_before} tokens to {n_kept}")
    if not new_ids:
        raise ValueError("there is no token to continue with")
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
    return Continued(
        before=before,
        cropped=cropped,
        after=cache.contents(),
        n_before=n_before,
        n_kept=n_kept,
        n_after=cache.length,
        nbytes=cache.nbytes,
        used=(used[0], used[1], cache.nbytes_used),
        access=cache.accesses[-1],
        difference=float((cached_logits - fresh_logits).abs().max()),
        next_id=int(cached_logits[-1].argmax()),
        fresh_id=int(fresh_logits[-1].argmax()),
        flops=forward_flops(model.config, len(new_ids), len(whole), n_logits=len(new_ids)),
        fresh_flops=forward_flops(model.config, len(whole), len(whole), n_logits=len(whole)),
    )
