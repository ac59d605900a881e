"""Softmax over each dimension, number by number, and what a mask still hides."""

import torch
from torch.testing import assert_close

from attention_core import causal_mask
from pages.learn.similarity.experiment.softmax_dims import (
    HEADS,
    KEYS,
    QUERIES,
    change_without_the_last,
    softmax_over,
)
from tests.helpers.lectures import LECTURE_NUMBERS

H, T = 3, 5


def scores() -> torch.Tensor:
    return torch.randn(H, T, T, generator=torch.Generator().manual_seed(2)) * 2


def test_notebook_uses_the_key_dimension():
    block = LECTURE_NUMBERS["002_simplified_self_attention"]
    weights = softmax_over(torch.tensor([block["scores"]]), KEYS)[0]
    assert_close(weights, torch.tensor(block["weights"]), atol=2e-5, rtol=0)
    # x x^T is symmetric, so softmax over the queries gives the transpose.
    other = softmax_over(torch.tensor([block["scores"]]), QUERIES)[0]
    assert_close(other, weights.T, atol=1e-6, rtol=0)


def test_only_softmax_over_queries_leaks_the_future():
    mask = causal_mask(T, T)
    # A CPU may sum a different number of columns in a different order, which changes the last bit.
    assert change_without_the_last(scores(), KEYS, mask) < 1e-6
    assert change_without_the_last(scores(), HEADS, mask) < 1e-6
    change = (
        softmax_over(scores(), QUERIES, mask)[:, :-1, :-1]
        - softmax_over(scores()[:, :-1, :-1], QUERIES, mask[:-1, :-1])
    ).abs()
    assert change_without_the_last(scores(), QUERIES, mask) == float(change.max()) > 0.1
    # An encoder's rows can see the last token.
    assert change_without_the_last(scores(), KEYS) > 0.0
