"""The attention of a model's layer: projections around `attend`, positions and a cache.

Dimension letters: B batch, T new tokens, S all keys (cached and new), H query heads,
H_kv key/value heads, D head size, C width.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.heads import merge_heads, split_heads
from attention_core.model.config import TransformerConfig
from attention_core.model.forward_pass import Pass
from attention_core.model.layers import Projection
from attention_core.positions.rotary import rotate


class Attention(nn.Module):
    """Multi-head attention with rotary positions and a cache, where a pass has them.

    With fewer key/value heads than query heads it is grouped-query attention.
    """

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

    def forward(self, x: Tensor, forward_pass: Pass) -> AttentionRecord:
        """Project, split into heads, attend, merge the heads, project: (B, T, C) -> (B, T, C).

        The result is the record's `output`.
        """
        projected = self.qkv(x)  # (B, T, C) -> (B, T, (H + 2 H_kv) * D)
        q, k, v = projected.split((self.q_width, self.kv_width, self.kv_width), dim=-1)
        q = split_heads(q, self.n_heads)  # (B, T, H*D) -> (B, H, T, D)
        k = split_heads(k, self.n_kv_heads)  # (B, T, H_kv*D) -> (B, H_kv, T, D)
        v = split_heads(v, self.n_kv_heads)
        if forward_pass.rotation is not None:
            q, k = rotate(q, forward_pass.rotation), rotate(k, forward_pass.rotation)
        if forward_pass.cache is not None:  # (B, H_kv, T, D) -> (B, H_kv, S, D)
            k, v = forward_pass.cache.update(self.layer, k, v)
        record = forward_pass.attend(self.layer, q, k, v)
        merged = merge_heads(record.context)  # (B, H, T, D) -> (B, T, H*D)
        output = self.out(merged)  # (B, T, H*D) -> (B, T, C)
        return replace(record, projected=projected, output=output)

    def out_weight(self) -> Tensor:
        """The matrix W_O that projects the merged heads: (H*D, C)."""
        return self.out.weight
