"""The attention of a model's layer: projections around `attend`, positions and a cache.

Dimension letters: B batch, T new tokens, S all keys (cached and new), H query heads,
H_kv key/value heads, D head size, C width.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from attention_core.attend import AttentionRecord, Edit, attend
from attention_core.cache import KVCache
from attention_core.heads import merge_heads, split_heads
from attention_core.model.config import TransformerConfig
from attention_core.model.layers import Projection
from attention_core.model.rotary import Rotation, rotate


class Attention(nn.Module):
    """Projections around `attend`, with rotary positions and a cache where they are used."""

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.n_heads, self.n_kv_heads = config.n_heads, config.kv_heads
        self.q_width = config.n_heads * config.d_head
        self.kv_width = config.kv_heads * config.d_head
        bias = config.attention_bias
        # queries, keys and values side by side: one matrix product instead of three
        self.qkv = Projection(config.d_model, self.q_width + 2 * self.kv_width, bias)
        self.out = Projection(self.q_width, config.d_model, bias)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None,
        rotation: Rotation | None,
        cache: KVCache | None,
        edit: Edit | None = None,
    ) -> AttentionRecord:
        """Attend, edit the heads if asked to, and project: x (B, T, C); `output` is (B, T, C)."""
        record = self.heads(x, mask=mask, rotation=rotation, cache=cache)
        if edit is not None:
            record = edit(self.layer, record)
        return replace(record, output=self.out(merge_heads(record.context)))

    def heads(
        self,
        x: Tensor,
        *,
        mask: Tensor | None,
        rotation: Rotation | None,
        cache: KVCache | None,
    ) -> AttentionRecord:
        """Every head's attention, before they are merged: x (B, T, C)."""
        q, k, v = self.qkv(x).split((self.q_width, self.kv_width, self.kv_width), dim=-1)
        q = split_heads(q, self.n_heads)  # (B, T, H*D) -> (B, H, T, D)
        k = split_heads(k, self.n_kv_heads)  # (B, T, H_kv*D) -> (B, H_kv, T, D)
        v = split_heads(v, self.n_kv_heads)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)  # (B, H_kv, T, D) -> (B, H_kv, S, D)
        return attend(q, k, v, mask=mask)
