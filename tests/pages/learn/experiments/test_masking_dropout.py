"""Explicit dropout: it matches PyTorch, and its average is the original matrix."""

import pytest
import torch
from torch.testing import assert_close

from pages.learn.masking.experiment.dropout_draws import apply_seeded_dropout, deviations


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_drops_the_same_cells_as_torch(p):
    seed = 123
    weights = torch.rand(4, 7, generator=torch.Generator().manual_seed(9))
    torch.manual_seed(seed)
    expected = torch.nn.functional.dropout(weights, p)
    one = apply_seeded_dropout(weights, p, seed)
    assert torch.equal(one.after, expected)
    assert_close(one.after, weights * one.keep_mask / (1 - p))


def test_deviations_of_averages():
    weights, p, draws = torch.tensor([[0.7, 0.0, 0.3], [0.2, 0.8, 0.0]]), 0.4, (1, 3, 64)
    result = deviations(weights, p, 5, draws)
    cells = weights[weights > 0]
    keep_mask = torch.empty(64, 4, dtype=torch.uint8)
    keep_mask.bernoulli_(1 - p, generator=torch.Generator().manual_seed(5))
    for i, n in enumerate(draws):
        away = ((cells * keep_mask[:n].float() / (1 - p)).mean(0) - cells).abs()
        assert float(result.largest[i]) == pytest.approx(float(away.max()), abs=1e-6)
        assert float(result.mean[i]) == pytest.approx(float(away.mean()), abs=1e-6)


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_rejects_invalid_probabilities(p):
    with pytest.raises(ValueError, match=f"got {p}"):
        apply_seeded_dropout(torch.ones(2), p, 0)
    with pytest.raises(ValueError, match=f"got {p}"):
        deviations(torch.ones(2), p, 0, (1,))
