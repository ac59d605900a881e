"""Dropout with its draws in view: the same as torch's, and its average is the undropped matrix."""

import math

import pytest
import torch
from torch.testing import assert_close

from pages.learn.masking.experiment.dropout_draws import (
    deviations,
    drop,
    drop_seeded,
    lecture_draw,
)
from tests.helpers.lectures import LECTURE_NUMBERS

BLOCK = LECTURE_NUMBERS["001_dropout_seed123"]
FOUR_DECIMALS = {"atol": 5e-5, "rtol": 0.0}


def test_the_articles_matrix():
    one = lecture_draw(BLOCK["p"])
    assert_close(one.before, torch.tensor(BLOCK["matrix"]), **FOUR_DECIMALS)
    assert_close(one.after, torch.tensor(BLOCK["dropped"]), **FOUR_DECIMALS)
    assert torch.equal(one.kept, (torch.tensor(BLOCK["dropped"]) > 0).float())
    assert_close(one.row_sums, one.after.sum(1)[:, None])


@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 123])
def test_the_same_cells_as_torch_drops(p, seed):
    weights = torch.rand(4, 7, generator=torch.Generator().manual_seed(9))
    torch.manual_seed(seed)
    expected = torch.nn.functional.dropout(weights, p)
    one = drop_seeded(weights, p, seed)
    assert torch.equal(one.after, expected)
    assert_close(one.after, weights * one.kept / (1 - p))


def test_one_stream_goes_on():
    weights = torch.ones(50)
    generator = torch.Generator().manual_seed(1)
    first, second = (drop(weights, 0.5, generator).kept for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(first, drop_seeded(weights, 0.5, 1).kept)


def test_deviations_are_those_of_averages():
    weights, p, draws = torch.tensor([[0.7, 0.0, 0.3], [0.2, 0.8, 0.0]]), 0.4, (1, 3, 64)
    found = deviations(weights, p, 5, draws)
    cells = weights[weights > 0]
    kept = torch.empty(64, 4, dtype=torch.uint8)
    kept.bernoulli_(1 - p, generator=torch.Generator().manual_seed(5))
    for place, n in enumerate(draws):
        away = ((cells * kept[:n].float() / (1 - p)).mean(0) - cells).abs()
        assert float(found.largest[place]) == pytest.approx(float(away.max()), abs=1e-6)
        assert float(found.mean[place]) == pytest.approx(float(away.mean()), abs=1e-6)


def test_many_draws_average_to_the_weights_as_one_over_root_n():
    weights = torch.softmax(torch.randn(9, 9, generator=torch.Generator().manual_seed(0)), -1)
    draws = (100, 10_000)
    found = deviations(weights, 0.5, 0, draws)
    # 81 cells, each deviation half-normal: the mean of them scatters by about 10 %
    assert_close(found.mean, found.expected, rtol=0.35, atol=0)
    assert float(found.expected[0] / found.expected[1]) == pytest.approx(10)
    mean_weight = float(weights.mean())
    assert float(found.expected[0]) == pytest.approx(math.sqrt(2 / math.pi) * mean_weight / 10)
    assert (found.largest >= found.mean).all()


def test_without_dropout_nothing_deviates():
    assert deviations(torch.rand(3), 0.0, 0, (1, 10)).largest.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_wrong_probabilities_are_refused(p):
    with pytest.raises(ValueError, match=f"got {p}"):
        drop_seeded(torch.ones(2), p, 0)
    with pytest.raises(ValueError, match=f"got {p}"):
        deviations(torch.ones(2), p, 0, (1,))


def test_nothing_to_average_is_refused():
    with pytest.raises(ValueError, match=r"got \[0\]"):
        deviations(torch.ones(2), 0.5, 0, (0,))
    with pytest.raises(ValueError, match="above zero"):
        deviations(torch.zeros(2), 0.5, 0, (1,))
