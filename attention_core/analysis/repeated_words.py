"""Repeated words for measuring induction and duplicate-token heads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from torch import Tensor

from attention_core.analysis.head_statistics import repeated_sequence

REPEATED_TOKENS = 50  # per copy, if two copies fit the context
SEED = 0
_CANDIDATES = 20  # oversampling factor, because not every token is a word


def repeated_words(
    n_ids: int, decode: Callable[[Sequence[int]], str], max_tokens: int
) -> Tensor | None:
    """Up to `REPEATED_TOKENS` random words, repeated once: (2n), int64.

    The result depends only on the tokenizer, which has the ids 0 to n_ids - 1; `decode` converts
    ids to text. max_tokens: number of tokens that fit the model's context. Returns None if two
    copies of two words don't fit.
    """
    words = _words(n_ids, decode)
    n = min(REPEATED_TOKENS, max_tokens // 2, len(words))
    return repeated_sequence(n, words, seed=SEED) if n >= 2 else None


def _words(n_ids: int, decode: Callable[[Sequence[int]], str]) -> list[int]:
    """Random ids of tokens made of letters, with an optional space before them.

    This excludes special tokens ([CLS]), untrained ones ([unused7]), and WordPiece suffixes
    (##ing).
    """
    candidates = random.Random(SEED).sample(range(n_ids), min(n_ids, _CANDIDATES * REPEATED_TOKENS))
    return [index for index in candidates if decode([index]).strip().isalpha()]
