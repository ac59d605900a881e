"""The core's model, made ready for training: first weights and dropout.

Dimension letters: B batch, T tokens, C width, V vocabulary, M tokens that are asked for.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from attention_core import Transformer
from attention_core.model.config import TransformerConfig
from attention_core.model.layers import random_weights
from attention_core.model.masked_word_head import MaskedWordHead
from attention_core.model.original_transformer import sinusoids


class MaskedWordWeights(nn.Module):
    """The weights of BERT's masked-word head, to be trained; the core's head computes with them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.d_model
        self.config = config
        self.dense = nn.Parameter(random_weights(width, width))
        self.dense_bias = nn.Parameter(torch.zeros(width))
        self.norm_weight = nn.Parameter(torch.ones(width))
        self.norm_bias = nn.Parameter(torch.zeros(width))
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: Tensor, output: Tensor) -> Tensor:
        """(M, C) and the token table (V, C) -> logits (M, V)."""
        return MaskedWordHead(
            self.config,
            self.dense,
            self.dense_bias,
            self.norm_weight,
            self.norm_bias,
            output,
            self.output_bias,
        )(hidden)


class LanguageModel(nn.Module):
    """A core with first weights for training, and BERT's head if it is an encoder.

    Dropout works while the module is in training mode, on what enters the first layer.
    """

    def __init__(self, config: TransformerConfig, dropout: float = 0.0) -> None:
        super().__init__()
        self.core = Transformer(config)
        self.head = None if config.causal else MaskedWordWeights(config)
        self.dropout = nn.Dropout(dropout)
        self.core.blocks[0].register_forward_pre_hook(self._drop_input)
        self._draw_first_weights(config)

    @torch.no_grad()
    def _draw_first_weights(self, config: TransformerConfig) -> None:
        """First weights with which a narrow model soon looks at neighbours.

        GPT-2's standard deviation of 0.02 suits a width of 768 and more; here a product keeps the
        size of what it reads. What is added to the stream is smaller by the number of additions
        (Radford et al. 2019). The table of positions, which is learned, begins as the sinusoids of
        2017 (https://arxiv.org/abs/1706.03762, section 3.5): a step to the token before is then
        the same turn everywhere, so that one head can learn it for all places at once.
        """
        width = config.d_model
        for name, weight in self.core.named_parameters():
            if name.startswith("blocks.") and weight.dim() == 2:
                weight.normal_(std=weight.shape[1] ** -0.5)
            if name.endswith("qkv.weight"):
                weight[width : 2 * width] = weight[:width]  # keys begin as queries
            if name.endswith(("out.weight", "down.weight")):
                weight.div_(math.sqrt(2 * config.n_layers))
        table = sinusoids(config.context_length, width)
        assert isinstance(self.core.positions, Tensor)
        self.core.positions.copy_(0.03 * table)

    def states(self, texts: Tensor) -> Tensor:
        """What the last layer leaves behind, without logits: (B, T) -> (B, T, C)."""
        positions = torch.arange(texts.shape[1], device=texts.device)
        entering = self.core.embed(texts, positions).entering
        return self.core.run_layers(entering, self.core.new_pass(entering, positions))[0]

    def next_token_logits(self, texts: Tensor) -> Tensor:
        """Logits of the token behind each: (B, T) -> (B, T, V)."""
        assert self.core.unembedding is not None
        return self.states(texts) @ self.core.unembedding

    def masked_word_logits(self, seen: Tensor, asked: Tensor) -> Tensor:
        """Logits of the tokens that are asked for: (B, T) and (B, T) -> (M, V)."""
        assert self.head is not None
        assert isinstance(self.core.embedding, Tensor)
        logits = self.head(self.states(seen)[asked], self.core.embedding)
        assert isinstance(logits, Tensor)
        return logits

    def _drop_input(self, module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.dropout(inputs[0]), *inputs[1:]
