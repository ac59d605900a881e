"""Compare ways to mask the future to `attend`, and find where renormalizing fails."""

import math

import pytest
import torch
from torch.testing import assert_close

from attention_core import attend, causal_mask
from pages.learn.masking.experiment.mask_orders import compare_masks

T, D = 6, 4


@pytest.mark.parametrize("scale", [1.0, 0.25, 3.0])
def test_masking_before_softmax_matches_attend(scale):
    q, k, v = torch.randn(3, T, D, generator=torch.Generator().manual_seed(2)).unbind()
    mask = causal_mask(T, T)
    ways = compare_masks(q @ k.T, mask, scale=scale)
    assert_close(ways.before, attend(q, k, v, mask=mask, scale=scale).weights)
    assert_close(ways.unmasked, attend(q, k, v, scale=scale).weights)
    assert ways.difference == pytest.approx(
        float((ways.renormalised - ways.before).abs().max()), abs=0
    )
    assert ways.difference < 1e-6


def test_underflow_breaks_renormalizing_but_not_the_mask():
    scores = torch.tensor([[0.0, 200.0], [0.0, 0.0]])
    ways = compare_masks(scores, causal_mask(2, 2))
    assert ways.before[0].tolist() == [1.0, 0.0]
    assert ways.renormalised[0].isnan().all()
    assert math.isnan(ways.difference)
