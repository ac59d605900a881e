"""Switch heads off, and measure what changes: ablation.

Two ways. "zero" takes away what a head writes: the same as zeros in its rows of W_O (Michel et al.
2019, https://arxiv.org/abs/1905.10650). "uniform" leaves the head its values but not its choice:
every key that the query may see gets the same weight, so that what the head writes stays an average
of values as the layers behind it know them.

What is measured holds for one text. It is no importance in general, and effects of single heads do
not add up: heads behind a missing one may do its work (McGrath et al. 2023,
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
from attention_core.model.forward_pass import Hooks
from attention_core.model.transformer import Transformer

Kind = Literal["zero", "uniform"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Numbers in the weights (rows of a batch, H, T, S) of one batch of changed runs: 64 MB in float32.
# Attention keeps about five tensors of that size at a time.
_MAX_WEIGHTS = 16 * 1024**2


@dataclass(frozen=True)
class HeadChange:
    """One head of one layer, and what is done to it.

    Raises: ValueError for a negative number or an unknown kind.
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


def changed(record: AttentionRecord, rows: Sequence[Collection[HeadChange]]) -> AttentionRecord:
    """A record with heads switched off: row b of the batch with the changes `rows[b]`.

    `weights` and `context` of those heads are new: zeros, or the mean over the keys that the query
    may see, and of their values. All else stays as it was computed. The layers of the changes are
    not looked at.
    Raises: ValueError for a head that the record does not have, or another number of rows.
    """
    batch_size, n_heads = record.weights.shape[:2]
    if len(rows) != batch_size:
        raise ValueError(f"there are changes for {len(rows)} rows, but {batch_size} in the batch")
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
    """The same weight for every key that is not masked: (..., T, S) -> (..., T, S).

    A query that may see no key gets a row of zeros.
    """
    visible = (masked_scores > -math.inf).to(masked_scores.dtype)
    return visible / visible.sum(dim=-1, keepdim=True).clamp(min=1.0)


def edit(rows: Sequence[Collection[HeadChange]]) -> Edit:
    """A function for `Hooks(edit_heads=...)`: row b of a batch gets the changes `rows[b]`."""
    layers = {change.layer for changes in rows for change in changes}

    def apply(layer: int, record: AttentionRecord) -> AttentionRecord:
        if layer not in layers:
            return record
        layer_changes = [
            [change for change in changes if change.layer == layer] for changes in rows
        ]
        return changed(record, layer_changes)

    return apply


def check_changes(config: TransformerConfig, changes: Collection[HeadChange]) -> None:
    """Raise ValueError for a layer or a head that the model does not have."""
    for change in changes:
        if change.layer >= config.n_layers or change.head >= config.n_heads:
            raise ValueError(
                f"there is no head {change.head} in layer {change.layer} of a model with "
                f"{config.n_layers} layers of {config.n_heads} heads"
            )


def hidden_with(
    model: Transformer, token_ids: Tensor, rows: Sequence[Collection[HeadChange]]
) -> Tensor:
    """One text with several sets of changes, as one batch: (T,) ids -> hidden (len(rows), T, C).

    The layers before the first change are run once, for all rows together.
    Raises: ValueError for a head that the model does not have, or tokens that do not fit.
    """
    for changes in rows:
        check_changes(model.config, changes)
    first = min((change.layer for changes in rows for change in changes), default=0)
    entering = model(token_ids[None], record=True, last_only=True).hidden_states[first]
    hooks = Hooks(edit_heads=edit(rows))
    return model.resume(entering.expand(len(rows), -1, -1), first, hooks=hooks)


Measure = Callable[[Tensor], Tensor]  # hidden (B, T, C) of changed runs -> (B, M) numbers


def prediction_effects(
    logits_of: Callable[[Tensor], Tensor], hidden: Tensor, position: int
) -> Measure:
    """Measures at one position: divergence (nats), change of the likeliest token's logit.

    logits_of: (B, C) -> (B, V), the model's output matrix or its masked-word head. hidden: (T, C)
    of the unchanged model, whose likeliest token at `position` is the one that is followed.
    Raises: ValueError for a position that the text does not have.
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
    """Measures over all tokens of a text: mean 1 - cosine, mean relative distance.

    hidden: (T, C) of the unchanged model.
    """

    def measure(states: Tensor) -> Tensor:
        distances = (cosine_distance(hidden, states), relative_distance(hidden, states))
        return torch.stack([distance.mean(dim=-1) for distance in distances], dim=-1)

    return measure


@dataclass(frozen=True)
class LayerEffects:
    """The effects of some heads of one layer, each switched off alone: `values` (heads, M)."""

    layer: int
    first_head: int
    values: Tensor


def rank(
    model: Transformer,
    token_ids: Tensor,
    kind: Kind,
    measure: Measure,
    *,
    before_layer: Callable[[int], None] | None = None,
) -> Iterator[LayerEffects]:
    """The effect of every head of a model on one text (T,), layer by layer.

    The heads of a layer run as one batch, each row with another head switched off, from the state
    that the unchanged model has before that layer: the layers below are not run again. Layers
    before the last cost more, since more of them follow: layer l runs L - l layers.
    Long texts are split into several batches. `before_layer` is called before each layer of each
    batch runs; by raising it ends the work.
    Raises: ValueError if the tokens do not fit the model, or for an unknown kind.
    """
    config, n_tokens = model.config, len(token_ids)
    states = model(token_ids[None], record=True, last_only=True).hidden_states
    batch = max(1, min(config.n_heads, _MAX_WEIGHTS // (config.n_heads * n_tokens**2)))
    for layer in range(config.n_layers):
        for first in range(0, config.n_heads, batch):
            heads = range(first, min(first + batch, config.n_heads))
            rows = [[HeadChange(layer, head, kind)] for head in heads]
            entering = states[layer].expand(len(rows), -1, -1)
            hooks = Hooks(before_layer, edit_heads=edit(rows))
            hidden = model.resume(entering, layer, hooks=hooks)
            yield LayerEffects(layer, first, measure(hidden))


def logits_from(model: Transformer) -> Callable[[Tensor], Tensor]:
    """The model's output matrix as a function of normed states: (B, C) -> (B, V).

    Raises: ValueError for a model without an output matrix; the function raises NotFiniteError for
    logits that overflow.
    """
    matrix = model.unembedding
    if matrix is None:
        raise ValueError("a model without an output matrix predicts no token")

    def logits_of(hidden: Tensor) -> Tensor:
        logits = hidden @ matrix
        require_finite("logits", logits, first=None)
        return logits

    return logits_of
