"""What a forward pass returns.

Dimension letters: B batch, T new tokens, C width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attention_core.attend import AttentionRecord
from attention_core.display import ShowsShapes
from attention_core.model.block import LayerRecord


@dataclass(frozen=True, repr=False)
class EmbeddingParts(ShowsShapes):
    """How the input of layer 0 came about: `total` is the sum of the parts that the model has.

    `position` is None for rotary positions, which act inside attention. `entering` is `total`
    after the embedding norm, where there is one.
    """

    token: Tensor  # (B, T, C)
    position: Tensor | None  # (T, C), or (B, T, C) where every row has positions of its own
    segment: Tensor | None  # (C), or (B, T, C) with segment ids
    total: Tensor  # (B, T, C)
    entering: Tensor  # (B, T, C)


@dataclass(frozen=True, repr=False)
class TransformerOutput(ShowsShapes):
    """What a forward pass returns.

    `logits` is (B, T, V), or (B, 1, V) for the last position alone, or None for a model without an
    output matrix. `hidden` is (B, T, C) after the last norm. With `record=True`, `embedding` and
    `layers` hold every tensor on the way, one `LayerRecord` a layer. Nothing in them is memory of
    a cache: they stay as they are whatever is done to the cache later.
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
        """The residual stream (B, T, C): before the first layer and after every layer."""
        outputs = tuple(layer.output for layer in self.layers)
        return (self.layers[0].input, *outputs) if self.layers else ()
