"""Ways to hide the future, against the article's numbers and against each other."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_core import attend, causal_mask
from pages.learn.masking.experiment.mask_orders import cut, leaked, mask_ways, renormalise
from tests.helpers.lectures import LECTURE_NUMBERS

BLOCK = LECTURE_NUMBERS["001_masking"]
FOUR_DECIMALS = {"atol": 5e-5, "rtol": 0.0}
T, D = 6, 4


@pytest.fixture
def scores() -> torch.Tensor:
    return torch.randn(T, T, generator=torch.Generator().manual_seed(1))


def test_the_articles_numbers():
    scores = torch.tensor(BLOCK["scores"])
    ways = mask_ways(scores, causal_mask(*scores.shape))
    expected = torch.tensor(BLOCK["softmax_masked_with_zero"])
    assert_close(ways.filled, expected, **FOUR_DECIMALS)
    assert_close(ways.leaked, expected.triu(1).sum(-1), atol=5e-4, rtol=0)
    for both in (ways.before, ways.renormalised):
        assert_close(both, torch.tensor(BLOCK["softmax_masked_with_minus_inf"]), **FOUR_DECIMALS)
    assert BLOCK["mask_then_renormalise_equals_minus_inf"] == (ways.difference < 1e-6)


@pytest.mark.parametrize("scale", [1.0, 0.25, 3.0])
def test_before_is_what_attend_does(scale):
    q, k, v = torch.randn(3, T, D, generator=torch.Generator().manual_seed(2)).unbind()
    mask = causal_mask(T, T)
    ways = mask_ways(q @ k.T, mask, scale=scale)
    assert_close(ways.before, attend(q, k, v, mask=mask, scale=scale).weights)
    assert_close(ways.unmasked, attend(q, k, v, scale=scale).weights)
    assert ways.difference == pytest.approx(
        float((ways.renormalised - ways.before).abs().max()), abs=0
    )
    assert ways.difference < 1e-6


def test_rows_and_what_leaks(scores):
    mask = causal_mask(T, T)
    ways = mask_ways(scores, mask)
    ones = torch.ones(T)
    for whole in (ways.unmasked, ways.renormalised, ways.before, ways.filled):
        assert_close(whole.sum(-1), ones)
    assert_close(1 - ways.zeroed.sum(-1), leaked(ways.unmasked, mask), atol=1e-6, rtol=0)
    # by hand: the first query may see one key, and the others have exp(0) each
    allowed = math.exp(scores[0, 0])
    assert float(ways.leaked[0]) == pytest.approx((T - 1) / (T - 1 + allowed), rel=1e-5)
    assert float(ways.leaked[-1]) == 0.0


def test_a_lower_fill_leaks_less_and_minus_infinity_nothing(scores):
    mask = causal_mask(T, T)
    totals = [
        float(mask_ways(scores, mask, fill=fill).leaked.sum())
        for fill in (0.0, -1.0, -5.0, -20.0, -math.inf)
    ]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > 1 > totals[2] > totals[3] > totals[4] == 0.0


def test_underflow_breaks_the_repair_but_not_the_mask():
    scores = torch.tensor([[0.0, 200.0], [0.0, 0.0]])
    ways = mask_ways(scores, causal_mask(2, 2))
    assert ways.before[0].tolist() == [1.0, 0.0]
    assert ways.renormalised[0].isnan().all()
    assert math.isnan(ways.difference)


def test_cut_and_renormalise(scores):
    weights = torch.tensor([[0.2, 0.3, 0.5]])
    left = cut(weights, torch.tensor([[True, False, True]]))
    assert_close(left, torch.tensor([[0.2, 0.0, 0.5]]))
    assert_close(renormalise(left), torch.tensor([[2 / 7, 0.0, 5 / 7]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fill": math.inf}, "got inf"),
        ({"fill": math.nan}, "got nan"),
        ({"scale": 0.0}, "got 0.0"),
        ({"mask": torch.zeros(T, T, dtype=torch.bool)}, "every query needs a key"),
    ],
)
def test_what_makes_no_mask_is_refused(scores, options, message):
    with pytest.raises(ValueError, match=message):
        mask_ways(scores, **{"mask": causal_mask(T, T), **options})
