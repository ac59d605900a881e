"""The return values of a forward pass.

Dimension letters: B batch, T new tokens, C width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attention_core.attend import AttentionRecord
from attention_core.display import ShapeReprMixin
from attention_core.model.block import LayerRecord


@dataclass(frozen=True, repr=False)
class EmbeddingParts(ShapeReprMixin):
    """The parts that add up to the input of layer 0; `total` is their sum.

    `position` is None for rotary positions, which are applied inside attention. `layer_input` is
    `total` after the embedding norm, if the model has one.
    """

    token: Tensor  # (B, T, C)
    position: Tensor | None  # (T, C), or (B, T, C) if each row has its own positions
    segment: Tensor | None  # (C), or (B, T, C) with segment ids
    total: Tensor  # (B, T, C)
    layer_input: Tensor  # (B, T, C)


@dataclass(frozen=True, repr=False)
class TransformerOutput(ShapeReprMixin):
    """The result of a forward pass.

    logits: (B, T, V), or (B, 1, V) with `last_only`; None for a model without an output matrix.
    hidden: (B, T, C), after the last norm. embedding, layers: with `record=True`, every
    intermediate tensor, with one `LayerRecord` per layer.
        They don't share memory with a cache, so later passes don't change them.
    """

    logits: Tensor | None
    hidden: Tensor
    embedding: EmbeddingParts | None = None
    layers: tuple[LayerRecord, ...] = ()

    @property
    def records(self) -> tuple[AttentionRecord, ...]:
        """The attention record of every layer."""
        return tuple(layer.attention for layer in self.layers)

    @property
    def hidden_states(self) -> tuple[Tensor, ...]:
        """The residual stream (B, T, C) before the first layer and after every layer."""
        outputs = tuple(layer.output for layer in self.layers)
        return (self.layers[0].input, *outputs) if self.layers else ()
