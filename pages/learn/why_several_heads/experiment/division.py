"""How the heads of one layer divide the work: what each looks at, and how unlike their maps are.

The jobs are those of `analysis.head_statistics`, and one more: words far away. Each is
the share of a head's attention that goes to such keys; the shares of a head may overlap.

Dimension letters: H heads, T tokens, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from attention_core.analysis.ablation import HeadChange, edit
from attention_core.analysis.distances import cosine_distance, divergence
from attention_core.analysis.head_statistics import (
    TextWeights,
    on_first,
    on_itself,
    on_next,
    on_previous,
    on_same_token,
)
from attention_core.model.forward_pass import Hooks
from attention_core.model.transformer import Transformer

FAR = 4  # tokens between a query and a key, from which on the key is far away
_BATCH_TOKENS = 128  # of all runs of a batch together


def on_far_words(text: TextWeights) -> Tensor:
    """Mean weight on keys at least `FAR` tokens away, without special tokens and position 0: (...).

    Over the queries that see two keys or more, as in the other statistics; heads with nothing to
    say rest on the tokens that are left out (Clark et al. 2019, https://arxiv.org/abs/1906.04341).
    """
    apart = (text.positions[:, None] - text.positions).abs()
    counted = (apart >= FAR) & ~text.special & (text.positions > 0)
    return (text.weights * counted).sum(dim=-1)[..., text.choosing].mean(dim=-1)


JOBS: dict[str, Callable[[TextWeights], Tensor]] = {
    "the token before": on_previous,
    "the token after": on_next,
    "itself": on_itself,
    "the first token": on_first,
    "the same word elsewhere": on_same_token,
    "words far away": on_far_words,
}


def jobs(text: TextWeights) -> dict[str, Tensor]:
    """The share of each head's attention for every job that the text and the mask allow: (...)."""
    shares = {name: measure(text) for name, measure in JOBS.items()}  # [shares]
    return {name: share for name, share in shares.items() if not bool(share.isnan().any())}


def map_distances(text: TextWeights) -> Tensor:
    """How unlike the maps of every two heads are: weights (..., H, T, T) -> (..., H, H).

    Half the sum over keys of |w - w'|, mean over the queries that see two keys or more (the total
    variation distance): the share of its attention that a head would have to move to look as the
    other does. 0 is the same map, 1 not a key in common. NaN where no query has a choice.
    """
    rows = text.weights[..., text.choosing, :]
    # every head beside every other: (..., 1, H, T', T) and (..., H, 1, T', T)
    differences = (rows.unsqueeze(-4) - rows.unsqueeze(-3)).abs()  # [differences]
    return differences.sum(dim=-1).mean(dim=-1) / 2


def mean_distance_of_pairs(distances: Tensor) -> Tensor:
    """The mean over every two different heads: (..., H, H) -> (...); NaN for a single head."""
    n_heads = distances.shape[-1]
    first, second = torch.triu_indices(n_heads, n_heads, offset=1)
    return distances[..., first, second].mean(dim=-1)


def switched_off(layer: int, n_heads: int) -> list[list[HeadChange]]:
    """Sets of heads of a layer to switch off, 1 + 2 H: all; all but head h; head h alone."""
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
    """What is lost with each set of `switched_off`, in its order: 1 + 2 H numbers.

    entering: the states of a text before the layer, (1, T, C); the layers below are not run again.
    lost: compares what leaves the unchanged model and a changed one, both (T, C). before_layer: is
    called before each layer of each run; by raising it ends the work. Runs of a short text are
    batched.
    Raises: ValueError for a layer that the model does not have, or states of another width.
    """
    unchanged = model.resume(entering, layer)[0]
    sets = switched_off(layer, model.config.n_heads)
    batch = max(1, _BATCH_TOKENS // entering.shape[1])
    for first in range(0, len(sets), batch):
        rows = sets[first : first + batch]
        hooks = Hooks(before_layer, edit_heads=edit(rows))
        changed = model.resume(entering.expand(len(rows), -1, -1), layer, hooks=hooks)  # [resumed]
        for hidden in changed:
            yield float(lost(unchanged, hidden))


def prediction_loss(logits_of: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Divergence of the next-token predictions in nats, mean over all tokens; for `losses`.

    logits_of: (T, C) -> (T, V), the output matrix of the model.
    """
    return lambda before, after: divergence(logits_of(before), logits_of(after)).mean()


def state_loss(before: Tensor, after: Tensor) -> Tensor:
    """1 - cosine of the vectors that leave, mean over all tokens; for `losses`."""
    return cosine_distance(before, after).mean()
