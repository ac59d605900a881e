"""Measurements of the attention sink: why the first token gets so much attention.

Softmax weights sum to 1, so a head with nothing to add has to put its weight somewhere. Decoders
learn to put it on the first token (Xiao et al. 2023, https://arxiv.org/abs/2309.17453). Its state
grows very long in a few coordinates and its values add little, so it acts like a bias (Sun et al.
2024, https://arxiv.org/abs/2402.17762). These functions measure whether a model does so on one
text; they don't assume it.

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
    """Measurements of the first token in one pass. All tensors are float32, on the CPU.

    weight: (L, H), mean weight of the later queries on key 0. share: (L, H), mean share of key 0 in
    a row's lengths ||alpha_ij v_j W_O||. uniform: the weight on key 0 if every query spread its
    weight evenly.
    value_ratio: (L, H), ||v_0 W_O|| over the median of the other tokens. key_ratio: (L, H_kv), the
    same for key lengths. state_ratio: (L + 1), the same for the residual stream: the embeddings,
    then the output of every layer. coordinate: (L + 1), the largest coordinate of the first token's
    state. concentration: (L + 1), its share of the squared length.
    received: (T - 1), mean weight of each key from the later queries, over all heads.
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


def measure_sink(model: Transformer, token_ids: Sequence[int]) -> Sink:
    """Run a decoder on one text and compare its first token to the others.

    Raises: ValueError for a model that isn't causal or fewer than 2 tokens; NotFiniteError for
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
        by_name = {"values": values, "keys": keys, "states": lengths}
        for name, numbers in by_name.items():
            require_finite(f"lengths of {name}", numbers[..., None])
        written = contributions(weights, values)
        squares = states[:, 0].square()
        largest = squares.max(dim=-1)
        return Sink(
            weight=weights[:, :, 1:, 0].mean(-1),
            share=ratio(written[..., 1:, 0], written[..., 1:, :].sum(-1)).mean(-1),
            uniform=uniform_weight(len(token_ids)),
            value_ratio=first_over_median(values),
            key_ratio=first_over_median(keys),
            state_ratio=first_over_median(lengths),
            concentration=ratio(largest.values, squares.sum(-1)),
            coordinate=largest.indices,
            received=received_weight(weights),
        )


def first_over_median(values: Tensor) -> Tensor:
    """The first entry over the median of the others: (..., T) -> (...).

    For an even number of others, the median is the mean of the middle two. If all entries are 0,
    the ratio is 1.
    Raises: ValueError for fewer than 2 entries.
    """
    if values.shape[-1] < 2:
        raise ValueError(f"at least 2 entries are needed, got {values.shape[-1]}")
    return ratio(values[..., 0], values[..., 1:].quantile(0.5, dim=-1), of_zeros=1.0)


def received_weight(weights: Tensor) -> Tensor:
    """The mean weight of each key from the queries after it: (..., T, T) -> (T - 1).

    A key's own query doesn't count, because token 0 sees only itself and gives itself all its
    weight. The last key has no later queries, so it's left out.
    """
    by_pair = weights.flatten(0, -3).mean(0) if weights.dim() > 2 else weights
    n_later = torch.arange(weights.shape[-1] - 1, 0, -1, device=weights.device)
    return by_pair.tril(-1).sum(0)[:-1] / n_later


def uniform_weight(n_tokens: int) -> float:
    """Mean weight on key 0 if queries 1 .. T - 1 spread theirs evenly: the mean of 1/(i+1).

    Raises: ValueError for fewer than 2 tokens.
    """
    if n_tokens < 2:
        raise ValueError(f"at least 2 tokens are needed, got {n_tokens}")
    return sum(1 / (query + 1) for query in range(1, n_tokens)) / (n_tokens - 1)


@dataclass(frozen=True)
class ChangedText:
    """A variant of a text with a different beginning.

    hidden: whether token 0 is masked for all queries in every layer.
    """

    name: str
    token_ids: tuple[int, ...]
    hidden: bool = False


@dataclass(frozen=True)
class SinkResult:
    """Result of a variant: `received` as in `Sink`, and its most likely next token."""

    variant: ChangedText
    received: Tensor
    next_id: int
    next_probability: float

    @property
    def sink(self) -> int:
        """The position that gets the most attention from later tokens."""
        return int(self.received.argmax())

    @property
    def second(self) -> int:
        """The position that gets the second most, or the sink if there's only one."""
        return int(self.received.topk(min(2, len(self.received))).indices[-1])


def variants(token_ids: Sequence[int], beginnings: Sequence[tuple[str, int]]) -> list[ChangedText]:
    """Variants of a text that show whether the sink depends on the token or its position.

    beginnings: names and ids of other first tokens. The first token is replaced by each of them,
    preceded by the first of them, dropped, and hidden from all queries. With rotary positions,
    which are relative, dropping and hiding give the same results for all remaining tokens.
    Raises: ValueError for fewer than 3 tokens, because dropping one must leave 2, or if there are
    no beginnings.
    """
    ids = tuple(token_ids)
    if len(ids) < 3:
        raise ValueError(f"at least 3 tokens are needed to drop one, got {len(ids)}")
    if not beginnings:
        raise ValueError("at least one other first token is needed")
    return [
        ChangedText("original text", ids),
        *(
            ChangedText(f"first token replaced by {name}", (token_id, *ids[1:]))
            for name, token_id in beginnings
        ),
        ChangedText(f"{beginnings[0][0]} added in front", (beginnings[0][1], *ids)),
        ChangedText("first token dropped", ids[1:]),
        ChangedText("first token hidden from all queries", ids, hidden=True),
    ]


def run_variants(
    model: Transformer,
    text_variants: Sequence[ChangedText],
) -> Iterator[SinkResult]:
    """Run the variants through the model, one each time the iterator advances.

    Raises: ValueError as in `measure_sink`, and for a model without an output matrix.
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
                raise ValueError("the model has no output matrix, so it can't predict a next token")
            weights = torch.cat([record.weights for record in output.records]).float().cpu()
            best = output.logits[0, -1].float().softmax(-1).max(-1)
        yield SinkResult(variant, received_weight(weights), int(best.indices), float(best.values))


def _batch(model: Transformer, token_ids: Sequence[int]) -> Tensor:
    return torch.tensor([list(token_ids)], device=next(model.parameters()).device)


def _check(model: Transformer, token_ids: Sequence[int]) -> None:
    if not model.config.causal:
        raise ValueError("the model must be causal, so that all tokens can see the first")
    if len(token_ids) < 2:
        raise ValueError(f"at least 2 tokens are needed, got {len(token_ids)}")
