"""The 2017 Transformer, and the named tensors of a single layer.

Dimension letters: B batch, T tokens of the layer, S encoder tokens, H heads, D head size,
C width, F width inside the feed-forward network, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from zlib import crc32

import torch
from torch import Tensor, nn

from attention_core.attention import MultiHeadAttention
from attention_core.heads import merge_heads
from attention_core.masks import causal_mask
from attention_core.model.block import Block, LayerRecord
from attention_core.model.config import TransformerConfig
from attention_core.model.layers import FeedForward, Projection, make_norm, random_weights

Steps = dict[str, Tensor]

# Names of a layer's tensors, the keys of `Steps`.
INPUT = "input"
ATTENTION_READS = "normalised for attention"
HEADS = "outputs of the heads"
CONCATENATED = "concatenated per word"
PROJECTED = "out projection"
ATTENTION_SUM = "residual sum"
ATTENTION_NORMED = "normalised sum"
CROSS_HEADS = "outputs of the cross-attention heads"
CROSS_CONCATENATED = "cross-attention concatenated"
CROSS_PROJECTED = "cross-attention out projection"
CROSS_SUM = "residual sum with cross-attention"
CROSS_NORMED = "normalised cross-attention sum"
MLP_READS = "normalised for feed-forward"
HIDDEN = "feed-forward hidden"
MLP_OUTPUT = "feed-forward output"
MLP_SUM = "second residual sum"
MLP_NORMED = "normalised output"


def original_config(
    *,
    d_model: int = 512,
    n_heads: int = 8,
    d_ff: int = 2048,
    n_layers: int = 6,
    vocab_size: int = 37_000,
    context_length: int = 512,
) -> TransformerConfig:
    """The base model of the original Transformer: post-norm layers with ReLU.

    `EncoderDecoder` adds `sinusoids` as positions, which have no parameters.
    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, table 3.
    """
    return TransformerConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        d_ff=d_ff,
        causal=False,
        norm_order="post",
        activation="relu",
    )


def layer_steps(layer: LayerRecord, config: TransformerConfig) -> Steps:
    """The tensors of a layer's record by name, in the order they're computed.

    The last one is the output. All are (B, T, C), except the heads (B, H, T, D), their
    concatenation (B, T, H*D) and the hidden layer (B, T, F).
    Raises: ValueError for absorbed latent attention, whose heads have no values.
    """
    if config.latent is not None and config.latent.absorbed:
        raise ValueError("absorbed latent attention has no values to show: use the expanded form")
    record = layer.attention
    assert record.output is not None  # every layer projects its heads
    attention = {
        HEADS: record.context,
        CONCATENATED: merge_heads(record.context),
        PROJECTED: record.output,
        ATTENTION_SUM: layer.attention_sum,
    }
    mlp = {HIDDEN: layer.mlp_hidden, MLP_OUTPUT: layer.mlp_output, MLP_SUM: layer.mlp_sum}
    if config.norm_order == "pre":
        reads = {INPUT: layer.input, ATTENTION_READS: layer.attention_reads}
        return {**reads, **attention, MLP_READS: layer.mlp_reads, **mlp}
    normed = {ATTENTION_NORMED: layer.mlp_reads}
    return {INPUT: layer.input, **attention, **normed, **mlp, MLP_NORMED: layer.output}


class DecoderLayer(nn.Module):
    """The 2017 decoder layer: masked self-attention, cross-attention, feed-forward.

    All three are post-norm.
    Shapes: x (B, T, C) and the encoder's output `memory` (B, S, C) -> (B, T, C).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        sizes = config.d_model, config.n_heads
        self.attention = MultiHeadAttention(*sizes, bias=config.attention_bias)
        self.attention_norm = make_norm(config)
        self.cross = MultiHeadAttention(*sizes, bias=config.attention_bias)
        self.cross_norm = make_norm(config)
        self.mlp = FeedForward(config)
        self.mlp_norm = make_norm(config)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """The layer's output (B, T, C)."""
        return self.steps(x, memory)[MLP_NORMED]

    def steps(self, x: Tensor, memory: Tensor) -> Steps:
        """Every tensor of the layer, in order, named as in `layer_steps`."""
        mask = causal_mask(x.shape[1], x.shape[1], device=x.device)
        record = self.attention.record(x, mask=mask)
        attention_sum = x + record.added  # [attention sum]
        attention_normed = self.attention_norm(attention_sum)  # [normed sum]
        cross_record = self.cross.record(attention_normed, memory=memory)  # S keys and values
        cross_sum = attention_normed + cross_record.added  # [cross sum]
        cross_normed = self.cross_norm(cross_sum)  # [normed cross sum]
        hidden: list[Tensor] = []
        mlp_output = self.mlp(cross_normed, activations=hidden)
        mlp_sum = cross_normed + mlp_output  # [mlp sum]
        mlp_normed = self.mlp_norm(mlp_sum)  # [normed output]
        return {
            INPUT: x,
            HEADS: record.context,
            CONCATENATED: merge_heads(record.context),
            PROJECTED: record.added,
            ATTENTION_SUM: attention_sum,
            ATTENTION_NORMED: attention_normed,
            CROSS_HEADS: cross_record.context,
            CROSS_CONCATENATED: merge_heads(cross_record.context),
            CROSS_PROJECTED: cross_record.added,
            CROSS_SUM: cross_sum,
            CROSS_NORMED: cross_normed,
            HIDDEN: hidden[0],
            MLP_OUTPUT: mlp_output,
            MLP_SUM: mlp_sum,
            MLP_NORMED: mlp_normed,
        }


class EncoderDecoder(nn.Module):
    """The full 2017 model; one matrix is both embeddings and the output matrix."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(random_weights(config.vocab_size, config.d_model))
        self.encoder = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_layers))

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits of the next target token: source (B, S), target (B, T) -> (B, T, V)."""
        memory, x = self._embed(source_ids), self._embed(target_ids)
        for block in self.encoder:
            memory = block(memory)
        for layer in self.decoder:
            x = layer(x, memory)
        return x @ self.embedding.t()

    def _embed(self, token_ids: Tensor) -> Tensor:
        width = self.config.d_model
        vectors = nn.functional.embedding(token_ids, self.embedding) * math.sqrt(width)
        return vectors + sinusoids(token_ids.shape[1], width).to(vectors)


def sinusoids(n_tokens: int, width: int) -> Tensor:
    """Sinusoidal positions (T, C): sine in even columns, cosine in odd ones.

    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.5.
    Raises: ValueError for an odd width.
    """
    if width % 2:
        raise ValueError(f"the width must be even, got {width}")
    exponents = torch.arange(0, width, 2, dtype=torch.float32) / width  # (C/2,)
    angles = torch.arange(n_tokens)[:, None] / 10_000.0**exponents  # [angles] (T, C/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # [sines and cosines]


def word_vectors(words: Sequence[str], width: int) -> Tensor:
    """A made-up embedding for each word, always the same: (T, C), standard normal."""
    rows = []
    for word in words:
        generator = torch.Generator().manual_seed(crc32(word.encode("utf-8", "replace")))
        rows.append(torch.randn(width, generator=generator))
    return torch.stack(rows)


def layer_input(words: Sequence[str], width: int) -> Tensor:
    """The input of the first 2017 layer: word vectors plus positions, (T, C)."""
    return word_vectors(words, width) + sinusoids(len(words), width)  # [input]


def randomize(module: nn.Module, seed: int) -> None:
    """Draw untrained weights that preserve scale: standard deviation 1/sqrt(d_in)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, Projection):
                part.weight.normal_(std=part.in_features**-0.5, generator=generator)
