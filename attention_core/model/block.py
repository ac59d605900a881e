"""One layer of a model: attention and a feed-forward network, each added to its input.

Dimension letters: B batch, T new tokens, C width.
"""

from __future__ import annotations

from torch import Tensor, nn

from attention_core.attend import AttentionRecord, Edit
from attention_core.cache import KVCache
from attention_core.model.attention import Attention
from attention_core.model.config import TransformerConfig
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import FeedForward, make_norm
from attention_core.model.rotary import Rotation


class Block(nn.Module):
    """Attention and feed-forward network, each added to the residual stream and normed.

    "pre" norms what a part reads (GPT-2, Llama); "post" norms the sum (the 2017 encoder, BERT).
    """

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        super().__init__()
        self.pre_norm = config.norm_order == "pre"
        self.attention_norm = make_norm(config)
        latent = config.latent is not None
        self.attention: Attention | LatentAttention = (
            LatentAttention(config, layer) if latent else Attention(config, layer)
        )
        self.mlp_norm = make_norm(config)
        self.mlp = FeedForward(config)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None,
        rotation: Rotation | None,
        cache: KVCache | None,
        edit: Edit | None = None,
    ) -> tuple[Tensor, AttentionRecord]:
        """The new residual stream (B, T, C) and the attention record."""
        if self.pre_norm:
            record = self.attention(
                self.attention_norm(x), mask=mask, rotation=rotation, cache=cache, edit=edit
            )
            x = x + record.output
            return x + self.mlp(self.mlp_norm(x)), record
        record = self.attention(x, mask=mask, rotation=rotation, cache=cache, edit=edit)
        x = self.attention_norm(x + record.output)
        return self.mlp_norm(x + self.mlp(x)), record
