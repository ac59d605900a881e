"""Ablation: switch off attention heads and measure what changes.

There are two ways. "zero" removes the head's output, which equals zeroing its rows of W_O (Michel
et al. 2019, https://arxiv.org/abs/1905.10650). "uniform" gives every visible key the same weight,
so the head's output is still an average of values that later layers are used to, but the head no
longer chooses.

Results hold for one text. They don't measure importance in general, and the effects of single heads
don't add up, because later heads may compensate for a missing one (McGrath et al. 2023,
https://arxiv.org/abs/2307.15771).

Dimension letters: B batch, T tokens, S keys, H query heads, D head size, C width, V vocabulary,
L layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from attention_core.analysis.distances import cosine_distance, divergence, relative_distance
from attention_core.attend import AttentionRecord, Edit
from attention_core.checks import require_finite
from attention_core.model.config import TransformerConfig
from attention_core.model.pass_context import Hooks
from attention_core.model.transformer import Transformer

Kind = Literal["zero", "uniform"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Largest number of attention weights (rows of a batch, H, T, S) in one batch, 64 MB in float32.
# Attention needs about five tensors of that size at the same time.
_MAX_WEIGHTS = 16 * 1024**2


@dataclass(frozen=True)
class HeadChange:
    """One head of one layer, and how to change it.

    Raises: ValueError for a negative index or an unknown kind.
    """

    layer: int
    head: int
    kind: Kind = "zero"

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.layer < 0 or self.head < 0:
            raise ValueError(f"layer and head count from 0, got {self.layer} and {self.head}")
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")


def apply_changes(
    record: AttentionRecord, rows: Sequence[Collection[HeadChange]]
) -> AttentionRecord:
    """A copy of the record with heads switched off; `rows[b]` applies to batch row b.

    Replaces `weights` and `context` of those heads: by zeros, or by the mean over the visible keys
    and their values. Everything else stays the same. The `layer` of a change is ignored.
    Raises: ValueError for a head that doesn't exist, or if `rows` doesn't match the batch size.
    """
    batch_size, n_heads = record.weights.shape[:2]
    if len(rows) != batch_size:
        raise ValueError(f"got changes for {len(rows)} rows, but the batch has {batch_size}")
    weights, context = record.weights.clone(), record.context.clone()
    group = n_heads // record.v.shape[1]  # query head h reads key/value head h // group
    for row, changes in enumerate(rows):
        for change in changes:
            head = change.head
            if head >= n_heads:
                raise ValueError(f"head must be 0 to {n_heads - 1}, got {head}")
            if change.kind == "zero":
                weights[row, head], context[row, head] = 0.0, 0.0
            else:
                weights[row, head] = uniform_weights(record.masked_scores[row, head])
                context[row, head] = weights[row, head] @ record.v[row, head // group]
    return replace(record, weights=weights, context=context)


def uniform_weights(masked_scores: Tensor) -> Tensor:
    """Equal weights for all visible keys: (..., T, S) -> (..., T, S).

    If a query can't see any key, its row is all zeros.
    """
    visible = (masked_scores > -math.inf).to(masked_scores.dtype)
    return visible / visible.sum(dim=-1, keepdim=True).clamp(min=1.0)


def make_edit(rows: Sequence[Collection[HeadChange]]) -> Edit:
    """A function for `Hooks(edit_heads=...)` that applies `rows[b]` to batch row b."""
    layers = {change.layer for changes in rows for change in changes}

    def apply(layer: int, record: AttentionRecord) -> AttentionRecord:
        if layer not in layers:
            return record
        layer_changes = [
            [change for change in changes if change.layer == layer] for changes in rows
        ]
        return apply_changes(record, layer_changes)

    return apply


def check_changes(config: TransformerConfig, changes: Collection[HeadChange]) -> None:
    """Raise ValueError for a layer or head that the model doesn't have."""
    for change in changes:
        if change.layer >= config.n_layers or change.head >= config.n_heads:
            raise ValueError(
                f"head {change.head} of layer {change.layer} doesn't exist in a model of "
                f"{config.n_layers} layers of {config.n_heads} heads"
            )


def run_with_changes(
    model: Transformer, token_ids: Tensor, rows: Sequence[Collection[HeadChange]]
) -> Tensor:
    """Run one text with several sets of changes: (T,) ids -> hidden (len(rows), T, C).

    The sets run as one batch. Layers before the first change run only once.
    Raises: ValueError if a head doesn't exist or the tokens don't fit the model.
    """
    for changes in rows:
        check_changes(model.config, changes)
    first = min((change.layer for changes in rows for change in changes), default=0)
    entering = model(token_ids[None], record=True, last_only=True).hidden_states[first]
    hooks = Hooks(edit_heads=make_edit(rows))
    return model.resume(entering.expand(len(rows), -1, -1), first, hooks=hooks)


Measure = Callable[[Tensor], Tensor]  # hidden (B, T, C) of changed runs -> (B, M) numbers


def prediction_effects(
    logits_of: Callable[[Tensor], Tensor], hidden: Tensor, position: int
) -> Measure:
    """Measure the divergence (nats) and the change of the top logit at one position.

    logits_of: (B, C) -> (B, V), the model's output matrix or its masked-word head. hidden: (T, C)
    from the unchanged model, whose most likely token at `position` is the one to track.
    Raises: ValueError if the text doesn't have this position.
    """
    if not 0 <= position < len(hidden):
        raise ValueError(f"position must be 0 to {len(hidden) - 1}, got {position}")
    before = logits_of(hidden[position][None])[0]
    likeliest = int(before.argmax())

    def measure(states: Tensor) -> Tensor:
        after = logits_of(states[:, position])
        logit = (after[:, likeliest] - before[likeliest]).double()
        return torch.stack((divergence(before, after), logit), dim=-1)

    return measure


def state_effects(hidden: Tensor) -> Measure:
    """Measure the mean 1 - cosine and mean relative distance over all tokens.

    hidden: (T, C) from the unchanged model.
    """

    def measure(states: Tensor) -> Tensor:
        distances = (cosine_distance(hidden, states), relative_distance(hidden, states))
        return torch.stack([distance.mean(dim=-1) for distance in distances], dim=-1)

    return measure


@dataclass(frozen=True)
class LayerEffects:
    """Effects of the heads of one layer, one at a time: `values` (heads, M)."""

    layer: int
    first_head: int
    values: Tensor


def rank_heads(
    model: Transformer,
    token_ids: Tensor,
    kind: Kind,
    measure: Measure,
    *,
    before_layer: Callable[[int], None] | None = None,
) -> Iterator[LayerEffects]:
    """Measure the effect of every head on one text (T,), layer by layer.

    The heads of a layer run as one batch, with a different head switched off in each row. They
    start from the unchanged state before that layer, so earlier layers don't run again. Early
    layers cost more than late ones, because a change in layer l reruns the L - l layers from there
    to the end.
    Long texts are split into several batches. `before_layer` is called before each layer of each
    batch and can stop the work by raising an error.
    Raises: ValueError if the tokens don't fit the model, or for an unknown kind.
    """
    config, n_tokens = model.config, len(token_ids)
    states = model(token_ids[None], record=True, last_only=True).hidden_states
    batch = max(1, min(config.n_heads, _MAX_WEIGHTS // (config.n_heads * n_tokens**2)))
    for layer in range(config.n_layers):
        for first in range(0, config.n_heads, batch):
            heads = range(first, min(first + batch, config.n_heads))
            rows = [[HeadChange(layer, head, kind)] for head in heads]
            entering = states[layer].expand(len(rows), -1, -1)
            hooks = Hooks(before_layer, edit_heads=make_edit(rows))
            hidden = model.resume(entering, layer, hooks=hooks)
            yield LayerEffects(layer, first, measure(hidden))


def logits_function(model: Transformer) -> Callable[[Tensor], Tensor]:
    """The model's output matrix as a function of normalized states: (B, C) -> (B, V).

    Raises: ValueError if the model has no output matrix. The function raises NotFiniteError if
    logits overflow.
    """
    matrix = model.unembedding
    if matrix is None:
        raise ValueError("this model has no output matrix, so it can't predict a token")

    def logits_of(hidden: Tensor) -> Tensor:
        logits = hidden @ matrix
        require_finite("logits", logits, first=None)
        return logits

    return logits_of
