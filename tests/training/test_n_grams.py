"""Kneser-Ney smoothing compared with the formulas written with dictionaries."""

from collections import Counter

import numpy as np
import pytest

from training.n_grams import NGrams, perplexity

V, D = 7, 0.6
IDS = np.random.default_rng(0).choice(V - 1, 60, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])  # never a 6
COUNTED = NGrams(IDS, V, D)


def one(c: int) -> float:
    contexts = Counter(b for _, b in set(zip(IDS, IDS[1:], strict=False)))
    return (contexts[c] + 1) / (sum(contexts.values()) + V)


def two(b: int, c: int, pairs: Counter) -> float:
    total = sum(n for (x, _), n in pairs.items() if x == b)
    if not total:
        return one(c)
    kinds = len([1 for x, _ in pairs if x == b])
    return max(pairs[b, c] - D, 0) / total + D * kinds / total * one(c)


def three(a: int, b: int, c: int) -> float:
    triples = Counter(zip(IDS, IDS[1:], IDS[2:], strict=False))
    lower = two(b, c, Counter((y, z) for _, y, z in triples))
    total = sum(n for (x, y, _), n in triples.items() if (x, y) == (a, b))
    if not total:
        return lower
    kinds = len([1 for x, y, _ in triples if (x, y) == (a, b)])
    return max(triples[a, b, c] - D, 0) / total + D * kinds / total * lower


def test_every_trigram_and_bigram():
    pairs = Counter(zip(IDS, IDS[1:], strict=False))
    for a in range(V):
        for b in range(V):
            tokens = [np.array([a, b, c]) for c in range(V)]
            trigrams = [COUNTED.trigram(ids)[0] for ids in tokens]
            assert trigrams == pytest.approx([three(a, b, c) for c in range(V)])
            assert sum(trigrams) == pytest.approx(1.0)
            bigrams = [COUNTED.bigram(np.array([b, c]))[0] for c in range(V)]
            assert bigrams == pytest.approx([two(b, c, pairs) for c in range(V)])
            assert sum(bigrams) == pytest.approx(1.0)


def test_unigrams_and_lengths():
    everything = np.arange(V)
    assert COUNTED.unigram(everything).sum() == pytest.approx(1.0)
    assert COUNTED.unigram(everything)[6] == 1 / (60 + V)
    assert len(COUNTED.bigram(IDS)) == 59
    assert len(COUNTED.trigram(IDS)) == 58
    assert perplexity(np.array([0.5, 0.125])) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("ids", "discount", "message"),
    [
        ([1, 2], 0.5, "3.*2"),
        ([1, 2, 7], 0.5, "0 to 6.*1 to 7"),
        ([1, 2, 3], 1.0, r"1\.0"),
    ],
)
def test_what_cannot_be_counted(ids, discount, message):
    with pytest.raises(ValueError, match=message):
        NGrams(np.array(ids), V, discount)
