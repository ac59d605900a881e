"""The words that are said twice where induction and duplicate tokens are measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from torch import Tensor

from attention_core.analysis.head_statistics import repeated_sequence

REPEATED_TOKENS = 50  # in each copy, where the model's context has room for two
SEED = 0
_CANDIDATES = 20  # times as many tokens are drawn as are needed: not every one is a word


def words_said_twice(
    n_ids: int, decode: Callable[[Sequence[int]], str], room: int
) -> Tensor | None:
    """Up to `REPEATED_TOKENS` words in random order, said twice: (2n) of int64.

    The same ones for the same tokenizer, which has the ids 0 .. n_ids - 1 and whose `decode` gives
    the text of a list of ids. room: how many tokens fit the model's context. None where two words
    said twice do not.
    """
    words = _words(n_ids, decode)
    n = min(REPEATED_TOKENS, room // 2, len(words))
    return repeated_sequence(n, words, seed=SEED) if n >= 2 else None


def _words(n_ids: int, decode: Callable[[Sequence[int]], str]) -> list[int]:
    """Random ids of tokens that are letters only, a space before them aside.

    That leaves out what a tokenizer adds ([CLS]), what was never trained ([unused7]), and pieces
    that WordPiece only uses inside a word (##ing).
    """
    candidates = random.Random(SEED).sample(range(n_ids), min(n_ids, _CANDIDATES * REPEATED_TOKENS))
    return [index for index in candidates if decode([index]).strip().isalpha()]
