"""The division of labor among the heads of a layer: their targets, and their distances.

The jobs are those of `analysis.head_statistics`, plus distant words. Each is the share of a head's
attention that goes to such keys; the shares of a head can overlap.

Dimension letters: H heads, T tokens, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from attention_core.analysis.ablation import HeadChange, make_edit
from attention_core.analysis.distances import cosine_distance, divergence
from attention_core.analysis.head_statistics import (
    TextWeights,
    on_first,
    on_itself,
    on_next,
    on_previous,
    on_same_token,
)
from attention_core.model.pass_context import Hooks
from attention_core.model.transformer import Transformer

FAR = 4  # a key is distant from this many tokens on
_BATCH_TOKENS = 128  # tokens per batch of runs


def far_word_weight(text: TextWeights) -> Tensor:
    """The mean weight on keys at least `FAR` tokens away: (...).

    Special tokens and position 0 aren't counted, because heads park unneeded attention there (Clark
    et al. 2019, https://arxiv.org/abs/1906.04341). The mean is over queries that see at least two
    keys, as in the other statistics.
    """
    apart = (text.positions[:, None] - text.positions).abs()
    counts = (apart >= FAR) & ~text.special & (text.positions > 0)
    return (text.weights * counts).sum(dim=-1)[..., text.has_several_keys].mean(dim=-1)


ROLES: dict[str, Callable[[TextWeights], Tensor]] = {
    "the previous token": on_previous,
    "the next token": on_next,
    "itself": on_itself,
    "the first token": on_first,
    "the same word elsewhere": on_same_token,
    "distant words": far_word_weight,
}


def head_roles(text: TextWeights) -> dict[str, Tensor]:
    """The share of each head's attention for every job possible with the text and mask: (...)."""
    shares = {name: measure(text) for name, measure in ROLES.items()}  # [shares]
    return {name: share for name, share in shares.items() if not bool(share.isnan().any())}


def map_distances(text: TextWeights) -> Tensor:
    """The distance of every two heads' maps: weights (..., H, T, T) -> (..., H, H).

    This is the total variation distance: half the sum over keys of |w - w'|, as the mean over
    queries that see at least two keys. It's the share of its attention that a head would have to
    move to match the other: 0 for equal maps, 1 for maps without a common key. NaN if no query has
    a choice.
    """
    rows = text.weights[..., text.has_several_keys, :]
    # broadcast every head against every other: (..., 1, H, T', T) and (..., H, 1, T', T)
    differences = (rows.unsqueeze(-4) - rows.unsqueeze(-3)).abs()  # [differences]
    return differences.sum(dim=-1).mean(dim=-1) / 2


def mean_distance_of_pairs(distances: Tensor) -> Tensor:
    """The mean over all pairs of different heads: (..., H, H) -> (...); NaN for one head."""
    n_heads = distances.shape[-1]
    first, second = torch.triu_indices(n_heads, n_heads, offset=1)
    return distances[..., first, second].mean(dim=-1)


def disabled_sets(layer: int, n_heads: int) -> list[list[HeadChange]]:
    """The 1 + 2 H sets of heads to switch off: all; all but head h; only head h."""
    heads = range(n_heads)
    # [other heads]
    left_alone = [[HeadChange(layer, other) for other in heads if other != head] for head in heads]
    return [
        [HeadChange(layer, head) for head in heads],
        *left_alone,
        *([HeadChange(layer, head)] for head in heads),
    ]


def losses(
    model: Transformer,
    entering: Tensor,
    layer: int,
    lost: Callable[[Tensor, Tensor], Tensor],
    *,
    before_layer: Callable[[int], None] | None = None,
) -> Iterator[float]:
    """Yield the loss for each set in `disabled_sets`, in order: 1 + 2 H numbers.

    entering: the text's states before the layer, (1, T, C), so that earlier layers don't have to
    run again. lost: compares the final states of the unchanged and the changed model, (T, C) each.
    before_layer: called before each layer of each run; it can stop the work by raising an error.
    Runs of a short text are batched.
    Raises: ValueError for a layer that the model doesn't have, or states of another width.
    """
    unchanged = model.resume(entering, layer)[0]
    sets = disabled_sets(layer, model.config.n_heads)
    batch = max(1, _BATCH_TOKENS // entering.shape[1])
    for first in range(0, len(sets), batch):
        rows = sets[first : first + batch]
        hooks = Hooks(before_layer, edit_heads=make_edit(rows))
        changed = model.resume(entering.expand(len(rows), -1, -1), layer, hooks=hooks)  # [resumed]
        for hidden in changed:
            yield float(lost(unchanged, hidden))


def prediction_loss(logits_of: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """For `losses`: the mean divergence of next-token predictions over all tokens, in nats.

    logits_of: (T, C) -> (T, V), the model's output matrix.
    """
    return lambda before, after: divergence(logits_of(before), logits_of(after)).mean()


def state_loss(before: Tensor, after: Tensor) -> Tensor:
    """For `losses`: the mean of 1 - cosine of the final vectors over all tokens."""
    return cosine_distance(before, after).mean()
