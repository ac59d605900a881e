"""The core's model prepared for training: initial weights and dropout.

Dimension letters: B batch, T tokens, C width, V vocabulary, M masked tokens.
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
    """Trainable weights of BERT's masked-word head, used by the core's head."""

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
        """States (M, C) and the token embedding (V, C) -> logits (M, V)."""
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
    """A core with initial weights for training, and BERT's head for encoders.

    In training mode, dropout is applied to the input of the first layer.
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
        """Initialize weights so that a narrow model quickly learns to attend to neighbors.

        GPT-2's standard deviation of 0.02 suits a width of 768 or more. Here, each product
        preserves the scale of its input. Outputs added to the residual stream are scaled down by
        the number of additions (Radford et al. 2019). The learned position table starts as the
        sinusoids of 2017 (https://arxiv.org/abs/1706.03762, section 3.5): moving to the previous
        token is then the same rotation everywhere, so a head can learn it for all positions at
        once.
        """
        width = config.d_model
        for name, weight in self.core.named_parameters():
            if name.startswith("blocks.") and weight.dim() == 2:
                weight.normal_(std=weight.shape[1] ** -0.5)
            if name.endswith("qkv.weight"):
                weight[width : 2 * width] = weight[:width]  # keys start equal to queries
            if name.endswith(("out.weight", "down.weight")):
                weight.div_(math.sqrt(2 * config.n_layers))
        table = sinusoids(config.context_length, width)
        assert isinstance(self.core.positions, Tensor)
        self.core.positions.copy_(0.03 * table)

    def states(self, texts: Tensor) -> Tensor:
        """The last layer's output, without logits: (B, T) -> (B, T, C)."""
        positions = torch.arange(texts.shape[1], device=texts.device)
        entering = self.core.embed(texts, positions).layer_input
        return self.core.run_layers(entering, self.core.new_pass(entering, positions))[0]

    def next_token_logits(self, texts: Tensor) -> Tensor:
        """Logits of the token after each position: (B, T) -> (B, T, V)."""
        assert self.core.unembedding is not None
        return self.states(texts) @ self.core.unembedding

    def masked_word_logits(self, inputs: Tensor, is_target: Tensor) -> Tensor:
        """Logits at the positions to predict: (B, T) and (B, T) -> (M, V)."""
        assert self.head is not None
        assert isinstance(self.core.embedding, Tensor)
        logits = self.head(self.states(inputs)[is_target], self.core.embedding)
        assert isinstance(logits, Tensor)
        return logits

    def _drop_input(self, module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.dropout(inputs[0]), *inputs[1:]
