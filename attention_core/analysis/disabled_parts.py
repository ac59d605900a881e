"""Run a model with parts switched off, and record every tensor.

Dimension letters: B batch, T new tokens, S all keys, H query heads, C width.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_core.attend import AttentionRecord, attend
from attention_core.model.block import Block, LayerRecord
from attention_core.model.pass_context import Hooks
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class DisabledParts:
    """The parts to switch off: heads by (layer, head), feed-forward networks by layer.

    mask: whether a causal model hides later tokens. scale: whether scores are divided by the square
    root of the head size.
    """

    heads: frozenset[tuple[int, int]] = frozenset()
    feed_forwards: frozenset[int] = frozenset()
    mask: bool = True
    scale: bool = True

    def check(self, n_layers: int, n_heads: int) -> None:
        """Raise ValueError for a layer or head that a model of these sizes doesn't have."""
        layers = {layer for layer, _ in self.heads} | self.feed_forwards
        if wrong := sorted(layer for layer in layers if not 0 <= layer < n_layers):
            raise ValueError(f"layers must be 0 to {n_layers - 1}, got {wrong}")
        if wrong := sorted(head for _, head in self.heads if not 0 <= head < n_heads):
            raise ValueError(f"heads must be 0 to {n_heads - 1}, got {wrong}")


NOTHING_DISABLED = DisabledParts()


def run_without(
    model: Transformer, token_ids: Tensor, disabled: DisabledParts = NOTHING_DISABLED
) -> tuple[Tensor, tuple[LayerRecord, ...]]:
    """Run tokens (B, T) with parts switched off.

    Returns the output of the last norm (B, T, C) and the record of each layer. Heads that are off
    output zeros; feed-forward networks that are off add nothing.
    Raises: ValueError for a layer or head that the model doesn't have.
    """
    positions = torch.arange(token_ids.shape[1], device=token_ids.device)
    x = model.embed(token_ids, positions).layer_input
    layers = []
    for number in range(model.config.n_layers):
        layers.append(run_layer_without(model, number, x, disabled))
        x = layers[-1].output
    return (x if model.final_norm is None else model.final_norm(x)), tuple(layers)


def run_layer_without(
    model: Transformer, number: int, x: Tensor, disabled: DisabledParts = NOTHING_DISABLED
) -> LayerRecord:
    """Run one layer on its input `x` (B, T, C), a whole text, with parts switched off.

    Raises: ValueError for a layer or head that the model doesn't have.
    """
    disabled.check(model.config.n_layers, model.config.n_heads)
    block = model.block(number)
    positions = torch.arange(x.shape[1], device=x.device)
    edits = Hooks(edit_heads=lambda layer, record: _edit_heads(disabled, layer, record))
    forward_pass = model.new_pass(x, positions, hooks=edits)
    if not disabled.mask:
        forward_pass = replace(forward_pass, mask=None)
    record = block.record(x, forward_pass)
    return _without_feed_forward(block, record) if number in disabled.feed_forwards else record


def _edit_heads(disabled: DisabledParts, layer: int, record: AttentionRecord) -> AttentionRecord:
    """Remove the scaling if it's off, and set the contexts of heads that are off to zero."""
    if not disabled.scale:
        mask = torch.isfinite(record.masked_scores)
        record = attend(record.q, record.k, record.v, mask=mask, scale=1.0)
    return _without_heads(record, [head for at, head in disabled.heads if at == layer])


def _without_heads(record: AttentionRecord, heads: Collection[int]) -> AttentionRecord:
    if not heads:
        return record
    context = record.context.clone()
    context[:, list(heads)] = 0.0
    return replace(record, context=context)


def _without_feed_forward(block: Block, record: LayerRecord) -> LayerRecord:
    """The record as if the feed-forward network had returned zeros."""
    unchanged = record.attention_sum if block.pre_norm else record.mlp_reads
    return replace(
        record,
        mlp_hidden=torch.zeros_like(record.mlp_hidden),
        mlp_output=torch.zeros_like(record.mlp_output),
        mlp_sum=unchanged,
        output=unchanged if block.pre_norm else block.mlp_norm(unchanged),
    )
