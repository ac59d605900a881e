"""Hidden keys, with and without renormalization, and rows with every key hidden."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.hide_keys import below_threshold, hide_keys

WEIGHTS = torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(1)).softmax(-1)
HIDDEN = torch.tensor([True, False, False, True, False, False, False])


@pytest.mark.parametrize("renormalise", [False, True])
def test_hidden_columns_match_a_loop(renormalise: bool):
    before = WEIGHTS.clone()
    result = hide_keys(WEIGHTS, HIDDEN, renormalise=renormalise)
    for row, result_row in zip(WEIGHTS.flatten(0, 2), result.flatten(0, 2), strict=True):
        remaining = [0.0 if hide else float(w) for w, hide in zip(row, HIDDEN, strict=True)]
        total = sum(remaining) if renormalise else 1.0
        assert_close(result_row, torch.tensor([w / total for w in remaining]), atol=1e-6, rtol=1e-5)
    assert_close(WEIGHTS, before, atol=0, rtol=0)
    assert (result[..., HIDDEN] == 0).all()


@pytest.mark.parametrize("renormalise", [False, True])
def test_row_with_every_key_hidden_is_zero(renormalise: bool):
    weights = torch.eye(4).tril()
    result = hide_keys(weights, torch.tensor([True, False, False, True]), renormalise=renormalise)
    assert result.tolist() == torch.diag(torch.tensor([0.0, 1.0, 1.0, 0.0])).tolist()
    nothing = hide_keys(weights, torch.ones(4, dtype=torch.bool), renormalise=renormalise)
    assert nothing.tolist() == torch.zeros(4, 4).tolist()


def test_weights_below_a_threshold():
    weights = torch.tensor([[0.0, 0.25, 0.75], [0.5, 0.25, 0.25]])
    assert below_threshold(weights, 0.25).tolist() == [[True, False, False], [False, False, False]]
    assert not below_threshold(weights, 0).any()
    assert below_threshold(weights, 1).all()


def test_rejects_invalid_flags_and_thresholds():
    for hidden in (HIDDEN[:5], HIDDEN.float()):
        with pytest.raises(ValueError, match="7 keys"):
            hide_keys(WEIGHTS, hidden, renormalise=False)
    for threshold in (1.5, float("nan")):
        with pytest.raises(ValueError, match="0 and 1"):
            below_threshold(WEIGHTS, threshold)
