"""An attention-only decoder with two layers, built from the core's modules.

It has no feed-forward network, so attention learns everything (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits",
https://transformer-circuits.pub/2021/framework/index.html).

Dimension letters: B batch, T tokens, H heads, D head size, C width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord
from attention_core.attention import MultiHeadAttention
from attention_core.masks import causal_mask
from attention_core.model.layers import Projection

WIDTH, N_LAYERS = 64, 2
THETA = 100.0  # small, because the sequences are short


@dataclass(frozen=True)
class Design:
    """The model's architecture and switches.

    n_heads: number of heads per layer. causal: whether the mask hides later tokens. scaled: whether
    scores are divided by the square root of the head size. dropout: the share of weights that
    training drops.
    Raises: ValueError if the heads don't divide the width into even sizes (rotary positions rotate
    pairs of numbers), or if dropout isn't from 0 to below 1.
    """

    n_heads: int = 4
    causal: bool = True
    scaled: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Check the number of heads and the dropout."""
        if self.n_heads < 1 or WIDTH % (2 * self.n_heads):
            raise ValueError(
                f"{self.n_heads} heads don't divide a width of {WIDTH} into even head sizes"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be from 0 to below 1, got {self.dropout}")


class AttentionOnlyLayer(nn.Module):
    """A norm and multi-head attention with rotary positions, added to the layer's input."""

    def __init__(self, design: Design) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = MultiHeadAttention(
            WIDTH,
            design.n_heads,
            rope_theta=THETA,
            dropout=design.dropout,
            scale=None if design.scaled else 1.0,
        )

    def forward(self, x: Tensor, mask: Tensor | None) -> AttentionRecord:
        """Run attention: (B, T, C) -> (B, T, C), which is the record's `output`."""
        return self.attention.record(self.norm(x), mask=mask)


class AttentionOnly(nn.Module):
    """Two attention layers between a token table and an output matrix.

    Weights are drawn from PyTorch's generator with a standard deviation of 1/sqrt(C).
    """

    def __init__(self, vocabulary: int, design: Design) -> None:
        super().__init__()
        self.design = design
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(AttentionOnlyLayer(design) for _ in range(N_LAYERS))
        self.norm, self.unembed = nn.LayerNorm(WIDTH), Projection(WIDTH, vocabulary)
        for layer in self.layers:
            assert isinstance(layer, AttentionOnlyLayer)
            draws = [torch.empty(WIDTH, WIDTH).normal_(std=WIDTH**-0.5) for _ in range(4)]
            with torch.no_grad():
                layer.attention.qkv.matrix.copy_(torch.cat(draws[:3], dim=1))
                layer.attention.out.matrix.copy_(draws[3])
        with torch.no_grad():
            self.unembed.matrix.copy_(torch.empty(WIDTH, vocabulary).normal_(std=WIDTH**-0.5))

    def forward(
        self, ids: Tensor, *, causal: bool | None = None
    ) -> tuple[Tensor, list[AttentionRecord]]:
        """Compute logits (B, T, vocabulary) for ids (B, T), and the record of each layer.

        causal: whether later tokens are hidden in this pass; None uses the design's setting.
        """
        n_tokens = ids.shape[1]
        hidden = self.design.causal if causal is None else causal
        mask = causal_mask(n_tokens, n_tokens, device=ids.device) if hidden else None
        x = self.tokens(ids)  # (B, T) -> (B, T, C)
        records = []
        for layer in self.layers:
            record = layer(x, mask)
            x = x + record.added
            records.append(record)
        return self.unembed(self.norm(x)), records
