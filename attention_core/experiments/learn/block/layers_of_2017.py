"""One layer taken apart: every tensor between its input and its output, and the 2017 layers.

Dimension letters: B batch, T tokens of the layer, S tokens of the encoder, H heads, D head size,
C width, F width inside the feed-forward network, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from zlib import crc32

import torch
from torch import Tensor, nn

from attention_core.attend import AttentionRecord, attend
from attention_core.heads import merge_heads, split_heads
from attention_core.masks import causal_mask
from attention_core.model.attention import Attention
from attention_core.model.block import Block
from attention_core.model.config import TransformerConfig
from attention_core.model.latent import LatentAttention
from attention_core.model.layers import FeedForward, Projection, make_norm, random_weights
from attention_core.model.rotary import Rotation, rotary_angles
from attention_core.model.transformer import Transformer

Steps = dict[str, Tensor]

# The names of a layer's tensors, in the keys of `Steps`.
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
    """The sizes of the first Transformer's base model: post-norm layers with ReLU.

    Its positions are `sinusoids`, added by `EncoderDecoder`; they have no parameters.
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


def surroundings(
    config: TransformerConfig, n_tokens: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor | None, Rotation | None]:
    """The mask (T, T) and the rotation that every layer of a model gets for T new tokens."""
    mask = None
    if config.causal and n_tokens > 1:
        mask = causal_mask(n_tokens, n_tokens, window=config.window)
    if config.positions != "rotary":
        return mask, None
    positions = torch.arange(n_tokens)
    return mask, rotary_angles(positions, config.d_rotary, config.rope_theta, dtype)


def layer_steps(
    block: Block, x: Tensor, *, mask: Tensor | None = None, rotation: Rotation | None = None
) -> Steps:
    """Every tensor of `block(x)`, in the order in which they are computed; the last is the output.

    All are (B, T, C), except the heads (B, H, T, D), their concatenation (B, T, H*D) and the hidden
    layer (B, T, F).
    Raises: ValueError for absorbed latent attention, whose heads hold no values.
    """
    attention = block.attention
    if isinstance(attention, LatentAttention) and attention.sizes.absorbed:
        raise ValueError("absorbed latent attention has no values to show: use the expanded form")
    if block.pre_norm:
        return _pre_norm_steps(block, x, mask, rotation)
    return _post_norm_steps(block, x, mask, rotation)


def _pre_norm_steps(
    block: Block, x: Tensor, mask: Tensor | None, rotation: Rotation | None
) -> Steps:
    attention_reads = block.attention_norm(x)
    record = block.attention.heads(attention_reads, mask=mask, rotation=rotation, cache=None)
    concatenated = merge_heads(record.context)  # (B, H, T, D) -> (B, T, H*D)
    projected = block.attention.out(concatenated)  # (B, T, H*D) -> (B, T, C)
    attention_sum = x + projected
    mlp_reads = block.mlp_norm(attention_sum)
    hidden = block.mlp.hidden(mlp_reads)  # (B, T, C) -> (B, T, F)
    mlp_output = block.mlp.down(hidden)  # (B, T, F) -> (B, T, C)
    mlp_sum = attention_sum + mlp_output
    return {
        INPUT: x,
        ATTENTION_READS: attention_reads,
        HEADS: record.context,
        CONCATENATED: concatenated,
        PROJECTED: projected,
        ATTENTION_SUM: attention_sum,
        MLP_READS: mlp_reads,
        HIDDEN: hidden,
        MLP_OUTPUT: mlp_output,
        MLP_SUM: mlp_sum,
    }


def _post_norm_steps(
    block: Block, x: Tensor, mask: Tensor | None, rotation: Rotation | None
) -> Steps:
    record = block.attention.heads(x, mask=mask, rotation=rotation, cache=None)
    concatenated = merge_heads(record.context)  # (B, H, T, D) -> (B, T, H*D)
    projected = block.attention.out(concatenated)  # (B, T, H*D) -> (B, T, C)
    attention_sum = x + projected
    attention_normed = block.attention_norm(attention_sum)
    hidden = block.mlp.hidden(attention_normed)  # (B, T, C) -> (B, T, F)
    mlp_output = block.mlp.down(hidden)  # (B, T, F) -> (B, T, C)
    mlp_sum = attention_normed + mlp_output
    mlp_normed = block.mlp_norm(mlp_sum)
    return {
        INPUT: x,
        HEADS: record.context,
        CONCATENATED: concatenated,
        PROJECTED: projected,
        ATTENTION_SUM: attention_sum,
        ATTENTION_NORMED: attention_normed,
        HIDDEN: hidden,
        MLP_OUTPUT: mlp_output,
        MLP_SUM: mlp_sum,
        MLP_NORMED: mlp_normed,
    }


class CrossAttention(nn.Module):
    """Queries from the decoder, keys and values from the encoder's output.

    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.3.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.n_heads, self.q_width = config.n_heads, config.n_heads * config.d_head
        self.q = Projection(config.d_model, self.q_width, config.attention_bias)
        self.kv = Projection(config.d_model, 2 * self.q_width, config.attention_bias)
        self.out = Projection(self.q_width, config.d_model, config.attention_bias)

    def heads(self, x: Tensor, memory: Tensor) -> AttentionRecord:
        """Every head's attention: x (B, T, C) and memory (B, S, C) -> context (B, H, T, D)."""
        k, v = self.kv(memory).chunk(2, dim=-1)
        return attend(
            split_heads(self.q(x), self.n_heads),
            split_heads(k, self.n_heads),
            split_heads(v, self.n_heads),
        )


class DecoderLayer(nn.Module):
    """The 2017 decoder layer: masked self-attention, cross-attention, feed-forward, all post-norm.

    Shapes: x (B, T, C) and the encoder's output `memory` (B, S, C) -> (B, T, C).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = Attention(config, 0)
        self.attention_norm = make_norm(config)
        self.cross = CrossAttention(config)
        self.cross_norm = make_norm(config)
        self.mlp = FeedForward(config)
        self.mlp_norm = make_norm(config)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """The layer's output (B, T, C)."""
        return self.steps(x, memory)[MLP_NORMED]

    def steps(self, x: Tensor, memory: Tensor) -> Steps:
        """Every tensor of the layer, in order, named as in `layer_steps`."""
        mask = causal_mask(x.shape[1], x.shape[1], device=x.device)
        record = self.attention.heads(x, mask=mask, rotation=None, cache=None)
        concatenated = merge_heads(record.context)  # (B, H, T, D) -> (B, T, H*D)
        projected = self.attention.out(concatenated)  # (B, T, H*D) -> (B, T, C)
        attention_sum = x + projected
        attention_normed = self.attention_norm(attention_sum)
        cross_record = self.cross.heads(attention_normed, memory)  # keys and values: S tokens
        cross_concatenated = merge_heads(cross_record.context)
        cross_projected = self.cross.out(cross_concatenated)
        cross_sum = attention_normed + cross_projected
        cross_normed = self.cross_norm(cross_sum)
        hidden = self.mlp.hidden(cross_normed)  # (B, T, C) -> (B, T, F)
        mlp_output = self.mlp.down(hidden)  # (B, T, F) -> (B, T, C)
        mlp_sum = cross_normed + mlp_output
        mlp_normed = self.mlp_norm(mlp_sum)
        return {
            INPUT: x,
            HEADS: record.context,
            CONCATENATED: concatenated,
            PROJECTED: projected,
            ATTENTION_SUM: attention_sum,
            ATTENTION_NORMED: attention_normed,
            CROSS_HEADS: cross_record.context,
            CROSS_CONCATENATED: cross_concatenated,
            CROSS_PROJECTED: cross_projected,
            CROSS_SUM: cross_sum,
            CROSS_NORMED: cross_normed,
            HIDDEN: hidden,
            MLP_OUTPUT: mlp_output,
            MLP_SUM: mlp_sum,
            MLP_NORMED: mlp_normed,
        }


class EncoderDecoder(nn.Module):
    """The whole 2017 model: two stacks, one table for both embeddings and the output matrix."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(random_weights(config.vocab_size, config.d_model))
        self.encoder = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_layers))

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Source (B, S) and target ids (B, T) -> logits of the next target token (B, T, V)."""
        memory, x = self._embed(source_ids), self._embed(target_ids)
        for block in self.encoder:
            memory, _ = block(memory, mask=None, rotation=None, cache=None)
        for layer in self.decoder:
            x = layer(x, memory)
        return x @ self.embedding.t()

    def _embed(self, token_ids: Tensor) -> Tensor:
        width = self.config.d_model
        vectors = nn.functional.embedding(token_ids, self.embedding) * math.sqrt(width)
        return vectors + sinusoids(token_ids.shape[1], width)


def sinusoids(n_tokens: int, width: int) -> Tensor:
    """The position vectors of 2017, (T, C): sine in even columns, cosine in odd ones.

    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.5.
    Raises: ValueError for an odd width.
    """
    if width % 2:
        raise ValueError(f"the width must be even, got {width}")
    exponents = torch.arange(0, width, 2, dtype=torch.float32) / width  # (C/2,)
    angles = torch.arange(n_tokens)[:, None] / 10_000.0**exponents  # (T, C/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def word_vectors(words: Sequence[str], width: int) -> Tensor:
    """A made-up embedding a word, the same for the same word: (T, C), standard normal."""
    rows = []
    for word in words:
        generator = torch.Generator().manual_seed(crc32(word.encode("utf-8", "replace")))
        rows.append(torch.randn(width, generator=generator))
    return torch.stack(rows)


def layer_input(words: Sequence[str], width: int) -> Tensor:
    """What the first layer of 2017 reads: word vectors and positions added up, (T, C)."""
    return word_vectors(words, width) + sinusoids(len(words), width)


def embeddings(model: Transformer, token_ids: Tensor, *, positions: bool) -> Tensor:
    """What a model's first layer reads, with or without learned positions: (B, T) -> (B, T, C).

    Rotary positions are no part of it in either case: layers apply them.
    """
    x = nn.functional.embedding(token_ids, model._token_table())
    if model.segments is not None:
        x = x + model.segments[0]
    if positions and model.positions is not None:
        x = x + model.positions[: token_ids.shape[1]]
    return x if model.embedding_norm is None else model.embedding_norm(x)


def randomize(module: nn.Module, seed: int) -> None:
    """Untrained weights with outputs of the size of inputs: normal, deviation 1/sqrt(d_in)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, Projection):
                part.weight.normal_(std=part.weight.shape[0] ** -0.5, generator=generator)
