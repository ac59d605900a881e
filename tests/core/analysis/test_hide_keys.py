"""Hidden keys: what remains, renormalized or not, and rows with nothing left."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.hide_keys import below_threshold, hide_keys

WEIGHTS = torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(1)).softmax(-1)
HIDDEN = torch.tensor([True, False, False, True, False, False, False])


@pytest.mark.parametrize("renormalise", [False, True])
def test_hidden_columns_against_a_loop(renormalise: bool):
    before = WEIGHTS.clone()
    left = hide_keys(WEIGHTS, HIDDEN, renormalise=renormalise)
    for row, shown in zip(WEIGHTS.flatten(0, 2), left.flatten(0, 2), strict=True):
        kept = [0.0 if hide else float(w) for w, hide in zip(row, HIDDEN, strict=True)]
        total = sum(kept) if renormalise else 1.0
        assert_close(shown, torch.tensor([w / total for w in kept]), atol=1e-6, rtol=1e-5)
    assert_close(WEIGHTS, before, atol=0, rtol=0)
    assert (left[..., HIDDEN] == 0).all()


@pytest.mark.parametrize("renormalise", [False, True])
def test_a_row_with_nothing_left_is_zeros(renormalise: bool):
    weights = torch.eye(4).tril()
    left = hide_keys(weights, torch.tensor([True, False, False, True]), renormalise=renormalise)
    assert left.tolist() == torch.diag(torch.tensor([0.0, 1.0, 1.0, 0.0])).tolist()
    nothing = hide_keys(weights, torch.ones(4, dtype=torch.bool), renormalise=renormalise)
    assert nothing.tolist() == torch.zeros(4, 4).tolist()


def test_below_a_threshold():
    weights = torch.tensor([[0.0, 0.25, 0.75], [0.5, 0.25, 0.25]])
    assert below_threshold(weights, 0.25).tolist() == [[True, False, False], [False, False, False]]
    assert not below_threshold(weights, 0).any()
    assert below_threshold(weights, 1).all()


def test_flags_and_thresholds_that_do_not_fit():
    for hidden in (HIDDEN[:5], HIDDEN.float()):
        with pytest.raises(ValueError, match="7 keys"):
            hide_keys(WEIGHTS, hidden, renormalise=False)
    for threshold in (1.5, float("nan")):
        with pytest.raises(ValueError, match="0 and 1"):
            below_threshold(WEIGHTS, threshold)
