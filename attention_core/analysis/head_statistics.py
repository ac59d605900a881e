"""What a head does on a text, in a few numbers each: how broadly, how far, and at what it looks.

Every statistic is a mean over queries. A query that sees one key alone (the first one of a decoder)
has nothing to choose: it gives weight 1 to itself in every head, so all statistics leave it out.
Where no query is left a statistic is NaN, and so it is where the text lacks what it asks for.

`STATISTICS` lists them with their definitions. The last two need a text that repeats: they are
measured once a model, on random tokens said twice (Olsson et al. 2022, "In-context Learning and
Induction Heads", https://arxiv.org/abs/2209.11895). Previous-token and duplicate-token heads are
named as in Wang et al. 2022 (https://arxiv.org/abs/2211.00593); entropy and distance of BERT's
heads, and their rest on [CLS] and [SEP], are measured in Clark et al. 2019
(https://arxiv.org/abs/1906.04341).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attention_core.model.transformer import Transformer
from attention_core.seeding import seeded


@dataclass(frozen=True)
class TextWeights:
    """The weights of some heads on one text, and what the statistics need to know of the text.

    weights (..., T, T): rows sum to 1, masked places are 0. ids (T) of whole numbers. special (T)
    of bool: tokens that are no text, such as [CLS]. causal: whether row i sees keys 0 .. i only.
    All on one device.
    Raises: ValueError when the shapes do not fit each other.
    """

    weights: Tensor
    ids: Tensor
    special: Tensor
    causal: bool

    def __post_init__(self) -> None:
        n = len(self.ids)
        if self.weights.shape[-2:] != (n, n) or self.special.shape != (n,) or self.ids.dim() != 1:
            raise ValueError(
                f"weights must be (..., T, T) with ids and special (T), got "
                f"{tuple(self.weights.shape)}, {tuple(self.ids.shape)}, {tuple(self.special.shape)}"
            )

    @cached_property
    def positions(self) -> Tensor:
        """0 .. T - 1, on the device of the weights: (T)."""
        return torch.arange(len(self.ids), device=self.weights.device)

    @cached_property
    def n_visible(self) -> Tensor:
        """How many keys each query sees: (T)."""
        n = len(self.ids)
        return self.positions + 1 if self.causal else torch.full_like(self.positions, n)

    @cached_property
    def choosing(self) -> Tensor:
        """Queries that see two keys or more: (T) of bool."""
        return self.n_visible > 1


def entropy(text: TextWeights) -> Tensor:
    """Mean entropy of the rows, in bits: (..., T, T) -> (...)."""
    return _mean_over(text.choosing, _row_entropies(text.weights))


def evenness(text: TextWeights) -> Tensor:
    """Mean of each row's entropy over the largest it can have, log2 of the keys it sees: (...)."""
    most = text.n_visible.float().log2().clamp(min=1)  # rows of one key are left out anyway
    return _mean_over(text.choosing, _row_entropies(text.weights) / most)


def mean_distance(text: TextWeights) -> Tensor:
    """Mean over queries of sum_j w_ij |i - j|, in tokens: (...)."""
    return _weighted(text, text.choosing, (text.positions[:, None] - text.positions).abs())


def on_first(text: TextWeights) -> Tensor:
    """Mean weight on the first token of the text as the model sees it ([CLS] in BERT): (...)."""
    return _weighted(text, text.choosing, text.positions == 0)


def on_special(text: TextWeights) -> Tensor:
    """Mean weight on all special tokens together; NaN for a text without any: (...)."""
    queries = text.choosing & text.special.any()
    return _weighted(text, queries, text.special)


def on_itself(text: TextWeights) -> Tensor:
    """Mean weight of a query on its own position: (...)."""
    return _weighted(text, text.choosing, text.positions[:, None] == text.positions)


def on_previous(text: TextWeights) -> Tensor:
    """Mean of w[i, i-1] over all queries but the first: (...)."""
    return _weighted(text, text.positions > 0, text.positions[:, None] - 1 == text.positions)


def on_next(text: TextWeights) -> Tensor:
    """Mean of w[i, i+1] over all queries but the last; NaN where they may not look ahead: (...)."""
    queries = text.positions < (0 if text.causal else len(text.ids) - 1)
    return _weighted(text, queries, text.positions[:, None] + 1 == text.positions)


def on_same_token(text: TextWeights) -> Tensor:
    """Mean weight on all other visible places of the query's own token id: (...).

    Over the queries that have such a place; special tokens are neither query nor key here. NaN
    where no token comes twice.
    """
    ordinary = ~text.special
    same = (text.ids[:, None] == text.ids) & ordinary[:, None] & ordinary
    same.fill_diagonal_(False)
    if text.causal:
        same = same.tril()
    return _weighted(text, same.any(-1), same)


def induction_score(weights: Tensor, n: int, *, start: int = 0) -> Tensor:
    """Mean of w[i, i-n+1] over the second copy of n tokens said twice: (..., T, T) -> (...).

    That key is the token that followed the query's token the first time: what an induction head
    looks up to predict what comes next. The first copy begins at position `start`.
    Raises: ValueError if two copies of at least 2 tokens do not fit the weights.
    """
    return _earlier(weights, n, start, 1)


def duplicate_score(weights: Tensor, n: int, *, start: int = 0) -> Tensor:
    """Mean of w[i, i-n] over the second copy: the weight on the same token in the first copy.

    Shapes and errors as of `induction_score`.
    """
    return _earlier(weights, n, start, 0)


@dataclass(frozen=True)
class Statistic:
    """One column of the table of heads.

    `definition` is one sentence with the formula in words. `low` and `high` bound the values
    (None: no bound that holds for every text); `unit` is empty for shares. `measure` computes it
    from the attention on a text, and is None for those measured on a repeated sequence.
    """

    name: str
    title: str
    definition: str
    measure: Callable[[TextWeights], Tensor] | None
    unit: str = ""
    low: float = 0.0
    high: float | None = 1.0


STATISTICS: tuple[Statistic, ...] = (
    Statistic(
        "entropy",
        "Entropy",
        "How broadly a head looks: minus the sum of w log2 w over the keys, mean over queries; "
        "0 bits is one key alone, log2 of the number of keys is all alike.",
        entropy,
        unit="bits",
        high=None,
    ),
    Statistic(
        "evenness",
        "Evenness",
        "Entropy of a row divided by the largest possible, log2 of the keys that the query sees; "
        "mean over queries. 1 is uniform attention.",
        evenness,
    ),
    Statistic(
        "distance",
        "Mean distance",
        "How far a head looks: the sum over keys of weight times |query position - key position|, "
        "mean over queries.",
        mean_distance,
        unit="tokens",
        high=None,
    ),
    Statistic(
        "first",
        "On the first token",
        "Weight on position 0, mean over queries: [CLS] in an encoder, in a decoder the first "
        "piece of text.",
        on_first,
    ),
    Statistic(
        "special",
        "On special tokens",
        "Weight on all special tokens together ([CLS], [SEP]), mean over queries; none where the "
        "text has no such token.",
        on_special,
    ),
    Statistic(
        "itself",
        "On itself",
        "Weight of a query on its own position, the diagonal, mean over queries.",
        on_itself,
    ),
    Statistic(
        "previous",
        "Previous token",
        "Weight on the position just before the query, mean over all queries but the first.",
        on_previous,
    ),
    Statistic(
        "next",
        "Next token",
        "Weight on the position just after the query, mean over all queries but the last; none "
        "in a decoder, which may not look ahead.",
        on_next,
    ),
    Statistic(
        "same",
        "Same word",
        "Weight on other positions that hold the same token, mean over the queries that have one; "
        "none where no token comes twice.",
        on_same_token,
    ),
    Statistic(
        "induction",
        "Induction",
        "On random tokens said twice, not on your text: weight on the token that followed the "
        "query's token the first time, mean over the second copy.",
        None,
    ),
    Statistic(
        "duplicate",
        "Duplicate token",
        "On random tokens said twice, not on your text: weight on the same token in the first "
        "copy, mean over the second copy.",
        None,
    ),
)


def repeated_sequence(n: int, vocabulary: Sequence[int], *, seed: int) -> Tensor:
    """Some n different tokens of a vocabulary in random order, said twice: (2n) of int64.

    Raises: ValueError if n is below 2 or the vocabulary has fewer than n different tokens.
    """
    candidates = torch.tensor(sorted(set(vocabulary)), dtype=torch.long)
    if not 2 <= n <= len(candidates):
        raise ValueError(
            f"a repeated sequence needs at least 2 tokens and at most the {len(candidates)} "
            f"different ones of the vocabulary, got n={n}"
        )
    with seeded(seed):
        return candidates[torch.randperm(len(candidates))[:n]].repeat(2)


@dataclass(frozen=True)
class RepeatedScores:
    """What the heads of a model do on a repeated sequence: each (n_layers, n_heads)."""

    induction: Tensor
    duplicate: Tensor


def repeated_scores(
    model: Transformer,
    ids: Tensor,
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
) -> RepeatedScores:
    """Induction and duplicate-token scores of every head on a `repeated_sequence` (2n).

    `before` and `after` are put around it: [CLS] and [SEP] where a model expects them. One forward
    pass; the weights of all layers are in memory at once, n_layers x n_heads x T^2 numbers.
    Raises: ValueError if the ids are not one sequence said twice, or exceed the model's context.
    """
    n = len(ids) // 2
    if ids.dim() != 1 or len(ids) != 2 * n or not torch.equal(ids[:n], ids[n:]):
        raise ValueError(f"ids of shape {tuple(ids.shape)} are not one sequence said twice")
    first, last = (torch.tensor(extra, dtype=torch.long) for extra in (list(before), list(after)))
    device = next(model.parameters()).device
    whole = torch.cat([first, ids.cpu(), last])[None].to(device)
    with torch.inference_mode():
        records = model(whole, record=True).records
        weights = [record.weights[0].float() for record in records]  # (H, T, T) each
        return RepeatedScores(
            torch.stack([induction_score(w, n, start=len(before)) for w in weights]),
            torch.stack([duplicate_score(w, n, start=len(before)) for w in weights]),
        )


def _row_entropies(weights: Tensor) -> Tensor:
    """Entropy of each row in bits, 0 log 0 taken as 0: (..., T, S) -> (..., T)."""
    return -torch.xlogy(weights, weights).sum(-1) / math.log(2)


def _mean_over(queries: Tensor, rows: Tensor) -> Tensor:
    """The mean of a number per query over some of them, NaN for none: (..., T), (T) -> (...)."""
    return rows[..., queries].mean(-1)


def _weighted(text: TextWeights, queries: Tensor, values: Tensor) -> Tensor:
    """Mean over some queries of sum_j w_ij values_ij; NaN for no query.

    Shapes: queries (T) of bool, values (T, T) or, the same for every query, (T) -> (...).
    """
    n_queries = queries.sum()
    coefficients = (values * queries[:, None]).to(text.weights) / n_queries
    # one matrix product for all heads: (..., T*T) @ (T*T) -> (...)
    return text.weights.flatten(-2) @ coefficients.flatten()


def _earlier(weights: Tensor, n: int, start: int, after: int) -> Tensor:
    """Mean of w[i, i - n + after] over the n queries i of the second copy."""
    n_rows, n_keys = weights.shape[-2:]
    if n < 2 or start < 0 or start + 2 * n > min(n_rows, n_keys):
        raise ValueError(
            f"two copies of n={n} tokens from position {start} on need n of at least 2 and "
            f"{start + 2 * n} positions, the weights are {n_rows} x {n_keys}"
        )
    queries = torch.arange(start + n, start + 2 * n, device=weights.device)  # [queries]
    return weights[..., queries, queries - n + after].mean(-1)  # [mean weight]
