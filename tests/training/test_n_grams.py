"""Kneser-Ney smoothing compared with formulas that use dictionaries."""

from collections import Counter

import numpy as np
import pytest

from training.n_grams import NGrams, perplexity

V, D = 7, 0.6
# token 6 never occurs
IDS = np.random.default_rng(0).choice(V - 1, 60, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
COUNTED = NGrams(IDS, V, D)


def unigram_probability(c: int) -> float:
    contexts = Counter(b for _, b in set(zip(IDS, IDS[1:], strict=False)))
    return (contexts[c] + 1) / (sum(contexts.values()) + V)


def bigram_probability(b: int, c: int, pairs: Counter) -> float:
    total = sum(n for (x, _), n in pairs.items() if x == b)
    if not total:
        return unigram_probability(c)
    kinds = len([1 for x, _ in pairs if x == b])
    return max(pairs[b, c] - D, 0) / total + D * kinds / total * unigram_probability(c)


def trigram_probability(a: int, b: int, c: int) -> float:
    triples = Counter(zip(IDS, IDS[1:], IDS[2:], strict=False))
    lower = bigram_probability(b, c, Counter((y, z) for _, y, z in triples))
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
            assert trigrams == pytest.approx([trigram_probability(a, b, c) for c in range(V)])
            assert sum(trigrams) == pytest.approx(1.0)
            bigrams = [COUNTED.bigram(np.array([b, c]))[0] for c in range(V)]
            assert bigrams == pytest.approx([bigram_probability(b, c, pairs) for c in range(V)])
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
def test_rejects_invalid_arguments(ids, discount, message):
    with pytest.raises(ValueError, match=message):
        NGrams(np.array(ids), V, discount)
