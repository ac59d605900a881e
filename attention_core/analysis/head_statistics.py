"""Statistics of attention heads on a text, such as entropy and distance.

Every statistic is a mean over queries. A query that sees only one key (the first one in a decoder)
gives it a weight of 1 in every head, so these queries are left out. A statistic is NaN if no query
remains or the text lacks what it measures.

`STATISTICS` defines them all. The last two need repeated text, so they're measured once per model
on repeated random tokens (Olsson et al. 2022, "In-context Learning and Induction Heads",
https://arxiv.org/abs/2209.11895). Previous-token and duplicate-token heads are named as in Wang et
al. 2022 (https://arxiv.org/abs/2211.00593). Clark et al. 2019 (https://arxiv.org/abs/1906.04341)
measure the entropy and distance of BERT's heads and their attention to [CLS] and [SEP].
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
    """Attention weights on one text, with the token data that the statistics need.

    weights: (..., T, T), rows sum to 1, hidden keys are 0. ids: (T), whole numbers. special: (T),
    bool, true for tokens that aren't text, such as [CLS]. causal: whether row i sees only keys 0 to
    i. All on the same device.
    Raises: ValueError if the shapes don't match.
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
        """0 to T - 1, on the device of the weights: (T)."""
        return torch.arange(len(self.ids), device=self.weights.device)

    @cached_property
    def n_visible(self) -> Tensor:
        """Number of keys that each query sees: (T)."""
        n = len(self.ids)
        return self.positions + 1 if self.causal else torch.full_like(self.positions, n)

    @cached_property
    def has_several_keys(self) -> Tensor:
        """Boolean mask of the queries that see at least two keys: (T)."""
        return self.n_visible > 1


def entropy(text: TextWeights) -> Tensor:
    """Mean entropy of the rows, in bits: (..., T, T) -> (...)."""
    return _mean_over(text.has_several_keys, _row_entropies(text.weights))


def evenness(text: TextWeights) -> Tensor:
    """Mean ratio of each row's entropy to log2 of its number of visible keys: (...)."""
    most = text.n_visible.float().log2().clamp(min=1)  # rows with one key are left out below
    return _mean_over(text.has_several_keys, _row_entropies(text.weights) / most)


def mean_distance(text: TextWeights) -> Tensor:
    """Mean over queries of sum_j w_ij |i - j|, in tokens: (...)."""
    return _weighted_mean(
        text, text.has_several_keys, (text.positions[:, None] - text.positions).abs()
    )


def on_first(text: TextWeights) -> Tensor:
    """Mean weight on the first token, which is [CLS] in BERT: (...)."""
    return _weighted_mean(text, text.has_several_keys, text.positions == 0)


def on_special(text: TextWeights) -> Tensor:
    """Mean weight on all special tokens together; NaN if there are none: (...)."""
    queries = text.has_several_keys & text.special.any()
    return _weighted_mean(text, queries, text.special)


def on_itself(text: TextWeights) -> Tensor:
    """Mean weight of a query on its own position: (...)."""
    return _weighted_mean(text, text.has_several_keys, text.positions[:, None] == text.positions)


def on_previous(text: TextWeights) -> Tensor:
    """Mean of w[i, i-1] over all queries except the first: (...)."""
    return _weighted_mean(text, text.positions > 0, text.positions[:, None] - 1 == text.positions)


def on_next(text: TextWeights) -> Tensor:
    """Mean of w[i, i+1] over all queries except the last; NaN if causal: (...)."""
    queries = text.positions < (0 if text.causal else len(text.ids) - 1)
    return _weighted_mean(text, queries, text.positions[:, None] + 1 == text.positions)


def on_same_token(text: TextWeights) -> Tensor:
    """Mean weight on other visible positions with the same token: (...).

    Only queries with at least one such position count, and special tokens are left out. NaN if no
    token occurs twice.
    """
    ordinary = ~text.special
    same = (text.ids[:, None] == text.ids) & ordinary[:, None] & ordinary
    same.fill_diagonal_(False)
    if text.causal:
        same = same.tril()
    return _weighted_mean(text, same.any(-1), same)


def induction_score(weights: Tensor, n: int, *, start: int = 0) -> Tensor:
    """Mean of w[i, i-n+1] over the second copy of n tokens: (..., T, T) -> (...).

    That key is the token that followed the query's token in the first copy. An induction head
    attends to it to predict the next token. The first copy starts at position `start`.
    Raises: ValueError if the weights are too small for two copies of at least 2 tokens.
    """
    return _offset_score(weights, n, start, 1)


def duplicate_score(weights: Tensor, n: int, *, start: int = 0) -> Tensor:
    """Mean of w[i, i-n] over the second copy: the weight on the same token in the first.

    Shapes and errors as in `induction_score`.
    """
    return _offset_score(weights, n, start, 0)


@dataclass(frozen=True)
class Statistic:
    """One column of the table of heads.

    `definition` is a sentence with the formula in words. `low` and `high` are bounds (None if there
    isn't one for every text); `unit` is empty for shares. `measure` computes the statistic from a
    text, and is None for statistics of a repeated sequence.
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
        "How broadly a head attends: minus the sum of w log2 w over the keys, mean over queries. "
        "0 bits means a single key, log2 of the number of keys means equal weights.",
        entropy,
        unit="bits",
        high=None,
    ),
    Statistic(
        "evenness",
        "Evenness",
        "Entropy of a row divided by its maximum, log2 of the number of visible keys; "
        "mean over queries. 1 means uniform attention.",
        evenness,
    ),
    Statistic(
        "distance",
        "Mean distance",
        "How far a head attends: sum over keys of weight times |query position - key position|, "
        "mean over queries.",
        mean_distance,
        unit="tokens",
        high=None,
    ),
    Statistic(
        "first",
        "On the first token",
        "Weight on position 0, mean over queries. It's [CLS] in an encoder and the first token of "
        "the text in a decoder.",
        on_first,
    ),
    Statistic(
        "special",
        "On special tokens",
        "Weight on all special tokens together ([CLS], [SEP]), mean over queries; empty if the "
        "text has no special tokens.",
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
        "Weight on the position just before the query, mean over all queries except the first.",
        on_previous,
    ),
    Statistic(
        "next",
        "Next token",
        "Weight on the position just after the query, mean over all queries except the last; empty "
        "in a decoder, which can't look ahead.",
        on_next,
    ),
    Statistic(
        "same",
        "Same word",
        "Weight on other positions with the same token, mean over the queries that have one; "
        "empty if no token occurs twice.",
        on_same_token,
    ),
    Statistic(
        "induction",
        "Induction",
        "On repeated random tokens, not on your text: weight on the token that followed the "
        "query's token the first time, mean over the second copy.",
        None,
    ),
    Statistic(
        "duplicate",
        "Duplicate token",
        "On repeated random tokens, not on your text: weight on the same token in the first "
        "copy, mean over the second copy.",
        None,
    ),
)


def repeated_sequence(n: int, vocabulary: Sequence[int], *, seed: int) -> Tensor:
    """A random sequence of n different tokens, repeated once: (2n), int64.

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
    """Scores of all heads on a repeated sequence: each (n_layers, n_heads)."""

    induction: Tensor
    duplicate: Tensor


def repeated_scores(
    model: Transformer,
    ids: Tensor,
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
) -> RepeatedScores:
    """Induction and duplicate-token scores of all heads on a `repeated_sequence` (2n).

    `before` and `after` are added around it, for models that expect [CLS] and [SEP]. Runs one
    forward pass and keeps the weights of all layers in memory, n_layers x n_heads x T^2 numbers.
    Raises: ValueError if `ids` isn't a repeated sequence or exceeds the model's context.
    """
    n = len(ids) // 2
    if ids.dim() != 1 or len(ids) != 2 * n or not torch.equal(ids[:n], ids[n:]):
        raise ValueError(f"ids of shape {tuple(ids.shape)} aren't a sequence that is repeated once")
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
    """Entropy of each row in bits, with 0 log 0 = 0: (..., T, S) -> (..., T)."""
    return -torch.xlogy(weights, weights).sum(-1) / math.log(2)


def _mean_over(queries: Tensor, rows: Tensor) -> Tensor:
    """Mean over the selected queries, NaN if there are none: (..., T), (T) -> (...)."""
    return rows[..., queries].mean(-1)


def _weighted_mean(text: TextWeights, queries: Tensor, values: Tensor) -> Tensor:
    """Mean over some queries of sum_j w_ij values_ij; NaN if there are none.

    Shapes: queries (T) of bool; values (T, T), or (T) if they're the same for every query -> (...).
    """
    n_queries = queries.sum()
    coefficients = (values * queries[:, None]).to(text.weights) / n_queries
    # one matrix product for all heads: (..., T*T) @ (T*T) -> (...)
    return text.weights.flatten(-2) @ coefficients.flatten()


def _offset_score(weights: Tensor, n: int, start: int, after: int) -> Tensor:
    """Mean of w[i, i - n + after] over the n queries i of the second copy."""
    n_rows, n_keys = weights.shape[-2:]
    if n < 2 or start < 0 or start + 2 * n > min(n_rows, n_keys):
        raise ValueError(
            f"two copies of n={n} tokens from position {start} on need n of at least 2 and "
            f"{start + 2 * n} positions, the weights are {n_rows} x {n_keys}"
        )
    queries = torch.arange(start + n, start + 2 * n, device=weights.device)  # [queries]
    return weights[..., queries, queries - n + after].mean(-1)  # [mean weight]
