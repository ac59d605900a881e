"""Compare attention between multi-token words and its baseline to explicit loops."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from attention_core.masks import causal_mask
from pages.compare.word_pairs.experiment import (
    other_pairs,
    preference,
    strongest_head,
    unit_rank,
    unit_weights,
)

TOKENS = 7
UNITS = [(0,), (1, 2, 3), (4,), (5, 6)]


def weights(*, causal: bool = False) -> torch.Tensor:
    scores = 2 * torch.randn(2, 3, TOKENS, TOKENS, generator=torch.Generator().manual_seed(5))
    if causal:
        scores.masked_fill_(~causal_mask(TOKENS, TOKENS), -torch.inf)
    return scores.softmax(-1)


def expected_weight(matrix: torch.Tensor, query: tuple[int, ...], key: tuple[int, ...]) -> float:
    return sum(float(matrix[i, j]) for i in query for j in key) / len(query)


def test_averages_over_queries_and_sums_over_keys():
    w = weights()
    for query in UNITS:
        word_weights = unit_weights(w, query, UNITS)
        assert word_weights.shape == (2, 3, len(UNITS))
        for layer, head in product(range(2), range(3)):
            expected = [expected_weight(w[layer, head], query, unit) for unit in UNITS]
            assert_close(word_weights[layer, head], torch.tensor(expected), atol=1e-6, rtol=1e-5)
        # The units cover every token exactly once.
        assert_close(word_weights.sum(-1), torch.ones(2, 3))


def test_ranks():
    word_weights = torch.tensor([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]])
    assert unit_rank(word_weights, 0).tolist() == [3, 2]
    assert unit_rank(word_weights, 1).tolist() == [1, 2]
    assert unit_rank(word_weights, 2).tolist() == [2, 1]


@pytest.mark.parametrize("causal", [False, True])
def test_strongest_head_of_each_pair(causal: bool):
    heads = weights(causal=causal).flatten(0, 1)
    largest = strongest_head(heads, UNITS)
    assert largest.shape == (len(UNITS), len(UNITS))
    for row, query in enumerate(UNITS):
        for column, key in enumerate(UNITS):
            expected = max(expected_weight(head, query, key) for head in heads)
            assert float(largest[row, column]) == pytest.approx(expected, abs=1e-6)
            if causal and column > row:
                assert expected == 0


@pytest.mark.parametrize("causal", [False, True])
def test_baseline_covers_all_other_pairs(causal: bool):
    largest = torch.arange(16.0).view(4, 4)
    ordinary = torch.tensor([False, True, True, True])
    result = other_pairs(largest, ordinary, (2, 1), causal=causal).tolist()
    expected = [
        float(largest[i, j])
        for i in (1, 2, 3)
        for j in (1, 2, 3)
        if i != j and (i, j) != (2, 1) and not (causal and j > i)
    ]
    assert result == expected
    assert len(result) == (2 if causal else 5)


def test_preference_needs_a_margin():
    first, second = torch.tensor([0.5, 0.2, 0.30]), torch.tensor([0.1, 0.6, 0.31])
    assert preference(first, second, margin=0.05).tolist() == [1, -1, 0]


@pytest.mark.parametrize("unit", [(), (-1,), (2, 7)])
def test_words_missing_from_the_text(unit: tuple[int, ...]):
    with pytest.raises(ValueError, match="text with 7"):
        unit_weights(weights(), unit, UNITS)
    with pytest.raises(ValueError, match="text with 7"):
        strongest_head(weights()[0], [unit])
