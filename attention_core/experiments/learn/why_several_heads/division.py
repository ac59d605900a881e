"""How the heads of one layer divide the work: what each looks at, and how unlike their maps are.

The jobs are those of `experiments.compare.heads.statistics`, and one more: words far away. Each is
the share of a head's attention that goes to such keys; the shares of a head may overlap.

Dimension letters: B changed runs, H heads, T tokens, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attention_core.experiments.compare.ablate import HeadChange, divergence
from attention_core.experiments.compare.heads.statistics import (
    TextAttention,
    on_first,
    on_itself,
    on_next,
    on_previous,
    on_same_token,
)

FAR = 4  # tokens between a query and a key, from which on the key is far away


def on_far_words(text: TextAttention) -> Tensor:
    """Mean weight on keys at least `FAR` tokens away, without special tokens and position 0: (...).

    Over the queries that see two keys or more, as in the other statistics; heads with nothing to
    say rest on the tokens that are left out (Clark et al. 2019, https://arxiv.org/abs/1906.04341).
    """
    apart = (text.positions[:, None] - text.positions).abs()
    counted = (apart >= FAR) & ~text.special & (text.positions > 0)
    return (text.weights * counted).sum(dim=-1)[..., text.choosing].mean(dim=-1)


JOBS: dict[str, Callable[[TextAttention], Tensor]] = {
    "the token before": on_previous,
    "the token after": on_next,
    "itself": on_itself,
    "the first token": on_first,
    "the same word elsewhere": on_same_token,
    "words far away": on_far_words,
}


def jobs(text: TextAttention) -> dict[str, Tensor]:
    """The share of each head's attention for every job that the text and the mask allow: (...)."""
    shares = {name: measure(text) for name, measure in JOBS.items()}
    return {name: share for name, share in shares.items() if not bool(share.isnan().any())}


def map_distances(text: TextAttention) -> Tensor:
    """How unlike the maps of every two heads are: weights (..., H, T, T) -> (..., H, H).

    Half the sum over keys of |w - w'|, mean over the queries that see two keys or more (the total
    variation distance): the share of its attention that a head would have to move to look as the
    other does. 0 is the same map, 1 not a key in common. NaN where no query has a choice.
    """
    rows = text.weights[..., text.choosing, :]
    # every head beside every other: (..., 1, H, T', T) and (..., H, 1, T', T)
    differences = (rows.unsqueeze(-4) - rows.unsqueeze(-3)).abs()
    return differences.sum(dim=-1).mean(dim=-1) / 2


def mean_distance_of_pairs(distances: Tensor) -> Tensor:
    """The mean over every two different heads: (..., H, H) -> (...); NaN for a single head."""
    n_heads = distances.shape[-1]
    first, second = torch.triu_indices(n_heads, n_heads, offset=1)
    return distances[..., first, second].mean(dim=-1)


def switched_off(layer: int, n_heads: int) -> Sequence[list[HeadChange]]:
    """Sets of heads of a layer to switch off, 1 + 2 H: all; all but head h; head h alone.

    For `experiments.compare.ablate.hidden_with`, in this order.
    """
    heads = range(n_heads)
    left_alone = [[HeadChange(layer, other) for other in heads if other != head] for head in heads]
    return [
        [HeadChange(layer, head) for head in heads],
        *left_alone,
        *([HeadChange(layer, head)] for head in heads),
    ]


def prediction_losses(hidden: Tensor, logits_of: Callable[[Tensor], Tensor]) -> Tensor:
    """Divergence of the next-token predictions in nats, mean over all tokens: (1 + B, T, C) -> (B).

    hidden: of the unchanged model, then of the B changed runs. logits_of: (T, C) -> (T, V). One run
    at a time: the logits of all would need gigabytes.
    """
    before = logits_of(hidden[0])
    return torch.stack([divergence(before, logits_of(row)).mean() for row in hidden[1:]])
