"""Bigram and trigram language models, as baselines for the trained models.

They use interpolated Kneser-Ney smoothing: each count is reduced by a discount, and the freed
probability goes to the shorter context. In that context, a token counts once for each longer
context it was seen in.
Sources: Kneser and Ney 1995; Chen and Goodman 1999, section 3.
Letters: N tokens of a text, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer]
Probabilities = NDArray[np.float64]


@dataclass(frozen=True)
class NGrams:
    """Unigram, bigram and trigram probabilities, from the counts in `ids`.

    Raises: ValueError for fewer than three ids, ids outside the vocabulary, or a discount that
    isn't between 0 and 1.
    """

    ids: Ids  # (N)
    vocab_size: int
    discount: float = 0.75

    def __post_init__(self) -> None:
        """Check the arguments."""
        if len(self.ids) < 3:
            raise ValueError(f"a text needs at least 3 tokens, got {len(self.ids)}")
        if not 0 <= int(self.ids.min()) <= int(self.ids.max()) < self.vocab_size:
            raise ValueError(
                f"ids must be 0 to {self.vocab_size - 1}, got {self.ids.min()} to {self.ids.max()}"
            )
        if not 0 < self.discount < 1:
            raise ValueError(f"the discount must be between 0 and 1, got {self.discount}")

    def unigram(self, ids: Ids) -> Probabilities:
        """p(c) of each token, from its count plus one: (N) -> (N)."""
        counts = np.bincount(self.ids, minlength=self.vocab_size) + 1.0
        shares: Probabilities = counts / counts.sum()
        return shares[ids]

    def bigram(self, ids: Ids) -> Probabilities:
        """p(c | b) of each token from the second on: (N) -> (N - 1)."""
        pairs = _codes(self.ids, 2, self.vocab_size)
        kinds, counts = np.unique(pairs, return_counts=True)
        return self._interpolate(
            _codes(ids, 2, self.vocab_size), kinds, counts, self._by_contexts(ids[1:])
        )

    def trigram(self, ids: Ids) -> Probabilities:
        """p(c | a, b) of each token from the third on: (N) -> (N - 2)."""
        triples = _codes(self.ids, 3, self.vocab_size)
        kinds, counts = np.unique(triples, return_counts=True)
        # a pair counts once for each different token before it
        pairs, contexts = np.unique(kinds % self.vocab_size**2, return_counts=True)
        shorter = self._interpolate(
            _codes(ids[1:], 2, self.vocab_size), pairs, contexts, self._by_contexts(ids[2:])
        )
        return self._interpolate(_codes(ids, 3, self.vocab_size), kinds, counts, shorter)

    def _by_contexts(self, ids: Ids) -> Probabilities:
        """p(c) from the number of different tokens before c, plus one: (N) -> (N)."""
        kinds = np.unique(_codes(self.ids, 2, self.vocab_size))
        contexts = np.bincount(kinds % self.vocab_size, minlength=self.vocab_size) + 1.0
        shares: Probabilities = contexts / contexts.sum()
        return shares[ids]

    def _interpolate(
        self,
        queries: NDArray[np.int64],
        kinds: NDArray[np.int64],
        counts: NDArray[np.int64],
        shorter: Probabilities,
    ) -> Probabilities:
        """Discounted n-gram probabilities plus the weighted lower-order probabilities.

        The weight is the probability mass freed by the discount.
        """
        contexts, first = np.unique(kinds // self.vocab_size, return_index=True)
        totals = np.add.reduceat(counts, first)
        followers = np.diff([*first, len(kinds)])  # number of different tokens after each context
        of_kind = np.where(_contains(kinds, queries), counts[_search(kinds, queries)], 0)
        context = queries // self.vocab_size
        known, place = _contains(contexts, context), _search(contexts, context)
        total = np.where(known, totals[place], 1)
        taken = self.discount * np.where(known, followers[place], 0) / total
        own = np.maximum(of_kind - self.discount, 0) / total
        return own + np.where(known, taken, 1.0) * shorter


def perplexity(probabilities: Probabilities) -> float:
    """The perplexity, exp(mean of -ln p)."""
    return float(np.exp(-np.log(probabilities).mean()))


def _codes(ids: Ids, n: int, vocab_size: int) -> NDArray[np.int64]:
    """One integer for each n-gram of a text: (N) -> (N - n + 1)."""
    wide = ids.astype(np.int64)
    codes = np.zeros(len(ids) - n + 1, dtype=np.int64)
    for place in range(n):
        codes = codes * vocab_size + wide[place : place + len(codes)]
    return codes


def _search(sorted_: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.minimum(np.searchsorted(sorted_, queries), len(sorted_) - 1)


def _contains(sorted_: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.equal(sorted_[_search(sorted_, queries)], queries)
