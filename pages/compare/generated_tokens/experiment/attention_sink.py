"""The attention sink: why so much attention goes to the first token, by measurement.

Softmax weights must sum to 1, so a head with nothing to add has to put its weight somewhere.
Decoders learn to put it on the first token (Xiao et al. 2023, https://arxiv.org/abs/2309.17453),
whose state grows very long in a few coordinates and whose values write little: a bias that the
weights carry (Sun et al. 2024, https://arxiv.org/abs/2402.17762). Nothing here assumes that a model
does so; these functions measure whether it does, on one text.

Dimension letters: L layers, H query heads, H_kv key/value heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.analysis.contributions import contributions, value_norms
from attention_core.analysis.distances import ratio
from attention_core.analysis.residual_stream import token_norms
from attention_core.checks import require_finite
from attention_core.model.transformer import Transformer


@dataclass(frozen=True)
class Sink:
    """What one pass shows of the first token. All tensors are float32, on the CPU.

    weight: (L, H), the mean weight on key 0 of the queries after it. share: (L, H), the same for
    its share in the written lengths ||alpha_ij v_j W_O|| of a row. uniform: the weight on key 0 if
    every query spread its weight evenly.
    value_ratio: (L, H), ||v_0 W_O|| over the median of the other tokens. key_ratio: (L, H_kv), the
    same for the length of the keys. state_ratio: (L + 1), for the residual stream: the embeddings,
    then the output of every layer. concentration: (L + 1), the share of its largest coordinate in
    the squared length of the first token's state; coordinate: (L + 1), which one that is.
    received: (T - 1), for each key the mean weight of the queries after it, over all heads.
    """

    weight: Tensor
    share: Tensor
    uniform: float
    value_ratio: Tensor
    key_ratio: Tensor
    state_ratio: Tensor
    concentration: Tensor
    coordinate: Tensor
    received: Tensor


def measure(model: Transformer, token_ids: Sequence[int]) -> Sink:
    """Run a decoder on one text and measure its first token against the others.

    Raises: ValueError for a model that is not causal, or fewer than 2 tokens; NotFiniteError for
    lengths that overflow.
    """
    _check(model, token_ids)
    with torch.inference_mode():
        output = model(_batch(model, token_ids), record=True)
        weights = torch.cat([record.weights for record in output.records]).float().cpu()
        values = torch.cat(
            [value_norms(r.v, model.out_weight(layer)) for layer, r in enumerate(output.records)]
        )
        values = values.float().cpu()
        keys = torch.cat([token_norms(record.k) for record in output.records]).float().cpu()
        states = torch.cat(output.hidden_states).float().cpu()
        lengths = token_norms(states)
        named = {"values": values, "keys": keys, "states": lengths}
        for name, numbers in named.items():
            require_finite(f"lengths of {name}", numbers[..., None])
        written = contributions(weights, values)
        squares = states[:, 0].square()
        largest = squares.max(dim=-1)
        return Sink(
            weight=weights[:, :, 1:, 0].mean(-1),
            share=ratio(written[..., 1:, 0], written[..., 1:, :].sum(-1)).mean(-1),
            uniform=uniform_weight(len(token_ids)),
            value_ratio=first_to_median(values),
            key_ratio=first_to_median(keys),
            state_ratio=first_to_median(lengths),
            concentration=ratio(largest.values, squares.sum(-1)),
            coordinate=largest.indices,
            received=received(weights),
        )


def first_to_median(values: Tensor) -> Tensor:
    """The first entry over the median of the others: (..., T) -> (...).

    Of an even number of others, the median is the mean of the middle two. Where all of it is 0, the
    first is as large as the others: 1.
    Raises: ValueError for fewer than 2 entries.
    """
    if values.shape[-1] < 2:
        raise ValueError(f"{values.shape[-1]} entries: the first has no others")
    return ratio(values[..., 0], values[..., 1:].quantile(0.5, dim=-1), of_zeros=1.0)


def received(weights: Tensor) -> Tensor:
    """The mean weight that each key gets from the queries after it: (..., T, T) -> (T - 1).

    A key's own query is left out, and so is the last key, which no query follows: token 0 always
    gives itself all its weight, for it sees nothing else.
    """
    by_pair = weights.flatten(0, -3).mean(0) if weights.dim() > 2 else weights
    n_later = torch.arange(weights.shape[-1] - 1, 0, -1, device=weights.device)
    return by_pair.tril(-1).sum(0)[:-1] / n_later


def uniform_weight(n_tokens: int) -> float:
    """The mean weight on key 0 of queries 1 .. T - 1 that spread their weight evenly: of 1/(i+1).

    Raises: ValueError for fewer than 2 tokens.
    """
    if n_tokens < 2:
        raise ValueError(f"{n_tokens} tokens: no query follows the first")
    return sum(1 / (query + 1) for query in range(1, n_tokens)) / (n_tokens - 1)


@dataclass(frozen=True)
class ChangedText:
    """A text whose beginning was changed, to be run again.

    hidden: no query of any layer may look at token 0.
    """

    name: str
    token_ids: tuple[int, ...]
    hidden: bool = False


@dataclass(frozen=True)
class SinkResult:
    """What a variant did: received as in `Sink`, and the likeliest next token at its end."""

    variant: ChangedText
    received: Tensor
    next_id: int
    next_probability: float

    @property
    def sink(self) -> int:
        """The position that gets the most attention from those after it."""
        return int(self.received.argmax())

    @property
    def second(self) -> int:
        """The position that gets the second most; that of the sink where there is no other."""
        return int(self.received.topk(min(2, len(self.received))).indices[-1])


def variants(token_ids: Sequence[int], beginnings: Sequence[tuple[str, int]]) -> list[ChangedText]:
    """A text, and the same with other beginnings, to see whether a sink follows token or place.

    `beginnings` are other first tokens, each a name and an id. The first token is replaced by each
    of them; the first of them is put before it; it is dropped; and it is hidden from all queries.
    With rotary positions, which are relative, the last two are the same computation for every token
    that remains.
    Raises: ValueError for fewer than 3 tokens, of which 2 would remain, or no beginnings.
    """
    ids = tuple(token_ids)
    if len(ids) < 3:
        raise ValueError(f"{len(ids)} tokens: at least 3 are needed to drop one")
    if not beginnings:
        raise ValueError("no other token to begin with")
    return [
        ChangedText("as it is", ids),
        *(
            ChangedText(f"first token replaced by {name}", (token_id, *ids[1:]))
            for name, token_id in beginnings
        ),
        ChangedText(f"{beginnings[0][0]} put before it", (beginnings[0][1], *ids)),
        ChangedText("first token dropped", ids[1:]),
        ChangedText("first token hidden from all queries", ids, hidden=True),
    ]


def run_variants(
    model: Transformer,
    text_variants: Sequence[ChangedText],
) -> Iterator[SinkResult]:
    """Run each variant through the whole model, when its outcome is asked for.

    Raises: ValueError as `measure` does, and for a model without an output matrix.
    """
    for variant in text_variants:
        _check(model, variant.token_ids)
        with torch.inference_mode():
            ids = _batch(model, variant.token_ids)
            key_mask = torch.ones_like(ids)
            key_mask[0, 0] = not variant.hidden
            output = model(
                ids,
                record=True,
                last_only=True,
                attention_mask=key_mask if variant.hidden else None,
                positions=torch.arange(ids.shape[1], device=ids.device)[None],
            )
            if output.logits is None:
                raise ValueError("a model without an output matrix predicts no next token")
            weights = torch.cat([record.weights for record in output.records]).float().cpu()
            best = output.logits[0, -1].float().softmax(-1).max(-1)
        yield SinkResult(variant, received(weights), int(best.indices), float(best.values))


def _batch(model: Transformer, token_ids: Sequence[int]) -> Tensor:
    return torch.tensor([list(token_ids)], device=next(model.parameters()).device)


def _check(model: Transformer, token_ids: Sequence[int]) -> None:
    if not model.config.causal:
        raise ValueError("only a causal model has a first token that all others can see")
    if len(token_ids) < 2:
        raise ValueError(f"{len(token_ids)} tokens: no query follows the first")
