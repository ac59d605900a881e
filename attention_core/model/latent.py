"""Multi-head latent attention: keys and values from one small vector per token.

A normal cache stores a key and a value for every head. Here each token stores a latent vector of r
numbers, from which every head computes its own key and value, and one rotary key that all heads
share. The rotary key has to be separate: a rotation between the two projection matrices would
depend on the distance between query and key, so the matrices couldn't be multiplied into one (the
absorbed form).

Source: DeepSeek-V2, https://arxiv.org/abs/2405.04434, section 2.1 and appendix C; also
DeepSeek-V3, https://arxiv.org/abs/2412.19437, section 2.1.1.

Dimension letters, in addition to the transformer's: r rank of the latent (`kv_rank`), N and R the
parts of a query or key without and with position, E size of a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.attention import (
    Watch,
    attend_heads,
    cache_for,
    check_inputs,
    mask_for,
    record_forward,
    rotation_for,
)
from attention_core.cache import KVCache
from attention_core.heads import merge_heads, split_heads
from attention_core.model.config import LatentConfig
from attention_core.model.layers import Projection, RMSNorm
from attention_core.positions.rotary import Rotation, rotate, rotate_neighbours


class LatentAttention(nn.Module):
    """Latent attention in two equivalent forms, called like `MultiHeadAttention`.

    Expanded: the keys (N + R) and values (E) of every head are computed from the latents of all S
    tokens, and attention runs as usual. The record has them per head.

    Absorbed: since q . (W_UK c) = (W_UK^T q) . c, each head's query is mapped to the latent space
    instead. Its context is then a weighted sum of latents, which is mapped to values at the end. No
    keys or values are computed, and all heads read the same latents, as in multi-query attention.
    The record contains q (B, H, T, r + R), k (B, 1, S, r + R) with the latent and the rotary key, v
    (B, 1, S, r) with the latent, and context (B, H, T, r). Scores and weights are the same as in
    the expanded form. This form uses the matrix of `kv_up` directly, so torch hooks on `kv_up`
    don't run.

    rope_theta: base of the rotary positions, for calls that don't pass a rotation.
    causal, bias, layer: as in `MultiHeadAttention`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        sizes: LatentConfig,
        *,
        causal: bool = False,
        bias: bool = True,
        rope_theta: float = 10_000.0,
        layer: int = 0,
    ) -> None:
        super().__init__()
        self.d_model, self.n_heads, self.sizes = d_model, n_heads, sizes
        self.causal, self.rope_theta, self.layer = causal, rope_theta, layer
        self.q_down = None if sizes.q_rank is None else Projection(d_model, sizes.q_rank, bias)
        self.q_norm = None if sizes.q_rank is None else RMSNorm(sizes.q_rank, sizes.norm_eps)
        self.q_up = Projection(sizes.q_rank or d_model, n_heads * sizes.qk_head_size, False)
        # latent and rotary key in one matrix; W_UK and W_UV of each head in another
        self.kv_down = Projection(d_model, sizes.kv_rank + sizes.rope_head_size, bias)
        self.kv_norm = RMSNorm(sizes.kv_rank, sizes.norm_eps)
        kv_head_size = sizes.nope_head_size + sizes.v_head_size
        self.kv_up = Projection(sizes.kv_rank, n_heads * kv_head_size, False)
        self.out = Projection(n_heads * sizes.v_head_size, d_model, bias)

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
        """Attend, merge the heads and project: (B, T, C) -> (B, T, C).

        Arguments and errors as in `MultiHeadAttention`; a memory isn't supported (ValueError).
        """
        check_inputs(self, x, memory, cache)
        rotation = rotation_for(self, x, positions, cache, self.sizes.rope_head_size)
        assert rotation is not None  # rope_theta is always set
        q_nope, q_rope = self.queries(x, rotation)
        latent, rope_key = self.compress(x, rotation)
        if cache is not None:  # T rows each -> S rows each
            latent, rope_key = cache.update(self.layer, latent, rope_key)
        form = self._absorbed if self.sizes.absorbed else self._expanded
        q, k, v = form(q_nope, q_rope, latent, rope_key)
        # the size of a head's key, not of the longer vectors in the absorbed form
        scale = 1.0 / math.sqrt(self.sizes.qk_head_size)
        mask = mask_for(self, x.shape[1], k.shape[2], mask, x.device)
        context, record = attend_heads(q, k, v, mask, scale, 0.0, watch)
        if self.sizes.absorbed:
            context = context @ self.up_matrices()[1]  # (B, H, T, r) -> (B, H, T, E)
        output: Tensor = self.out(merge_heads(context))
        if watch is not None and record is not None:
            watch.record = replace(record, output=output)
        return output

    def record(self, x: Tensor, **options: Any) -> AttentionRecord:
        """Run `forward` and return every intermediate; `output` is the return value."""
        return record_forward(self, x, **options)

    def new_cache(self, batch_size: int, max_length: int) -> KVCache:
        """An empty cache for this one layer, with a latent and a rotary key per token."""
        shapes = (1, self.sizes.kv_rank), (1, self.sizes.rope_head_size)
        return cache_for(self, batch_size, max_length, *shapes)

    def queries(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        """Both query parts of every head: (B, T, C) -> (B, H, T, N), rotated (B, H, T, R)."""
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))  # (B, T, C) -> (B, T, q_rank)
        q = split_heads(self.q_up(x), self.n_heads)
        nope, rope = q.split((self.sizes.nope_head_size, self.sizes.rope_head_size), dim=-1)
        return nope, self._rotate(rope, rotation)

    def compress(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        """The cached part of a token: (B, T, C) -> latent (B, 1, T, r), key (B, 1, T, R)."""
        sizes = (self.sizes.kv_rank, self.sizes.rope_head_size)
        latent, rope_key = self.kv_down(x)[:, None].split(sizes, dim=-1)
        return self.kv_norm(latent), self._rotate(rope_key, rotation)

    def up_matrices(self) -> tuple[Tensor, Tensor]:
        """W_UK (H, r, N) for keys and W_UV (H, r, E) for values, views of one weight."""
        by_head = self.kv_up.weight.view(self.n_heads, -1, self.sizes.kv_rank).mT
        w_uk, w_uv = by_head.split((self.sizes.nope_head_size, self.sizes.v_head_size), dim=-1)
        return w_uk, w_uv

    def out_weight(self) -> Tensor:
        """The matrix that projects the merged contexts: (H*E, C), or absorbed (H*r, C)."""
        if not self.sizes.absorbed:
            return self.out.matrix
        by_head = self.out.matrix.unflatten(0, (self.n_heads, self.sizes.v_head_size))
        return (self.up_matrices()[1] @ by_head).flatten(0, 1)

    def _expanded(
        self, q_nope: Tensor, q_rope: Tensor, latent: Tensor, rope_key: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every head."""
        # [keys and values]
        keys_and_values = split_heads(self.kv_up(latent[:, 0]), self.n_heads)  # (B, H, S, N + E)
        sizes = (self.sizes.nope_head_size, self.sizes.v_head_size)  # [sizes]
        k_nope, v = keys_and_values.split(sizes, dim=-1)  # [split]
        k = torch.cat((k_nope, rope_key.expand(-1, self.n_heads, -1, -1)), dim=-1)  # [keys]
        return torch.cat((q_nope, q_rope), dim=-1), k, v

    def _absorbed(
        self, q_nope: Tensor, q_rope: Tensor, latent: Tensor, rope_key: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries in latent space, latents with the rotary key, and latents alone."""
        w_uk, _ = self.up_matrices()
        q = torch.cat((q_nope @ w_uk.mT, q_rope), dim=-1)  # [queries] (B, H, T, N) @ (H, N, r)
        k = torch.cat((latent, rope_key), dim=-1)  # [keys]
        return q, k, latent

    def _rotate(self, x: Tensor, rotation: Rotation) -> Tensor:
        turn: Callable[[Tensor, Rotation], Tensor]
        turn = rotate_neighbours if self.sizes.interleaved else rotate
        return turn(x, rotation)
