"""Random windows of the books, and masked tokens for BERT."""

import numpy as np
import pytest
import torch

from training.batches import mask_tokens, windows

IDS = np.arange(1000, 1100, dtype=np.uint16)
N_TOKENS, MASK_ID = 900, 901


def test_windows_are_contiguous_and_depend_on_the_seed():
    first = windows(IDS, 7, 13, seed=(3, 5))
    assert first.shape == (7, 13)
    assert first.dtype == torch.int64
    assert (first.diff(dim=1) == 1).all()
    assert torch.equal(first, windows(IDS, 7, 13, seed=(3, 5)))
    assert not torch.equal(first, windows(IDS, 7, 13, seed=(3, 6)))


def test_masking_shares_match_devlin_2018():
    texts = torch.full((400, 500), 17)
    is_target = mask_tokens(texts, 0.2, N_TOKENS, MASK_ID, seed=4)
    # standard errors for 200,000 samples: 0.0009 for a share of 0.2, and 0.002 for shares of it
    assert is_target.is_target.double().mean().item() == pytest.approx(0.2, abs=0.005)
    visible = is_target.inputs[is_target.is_target]
    assert (visible == MASK_ID).double().mean().item() == pytest.approx(0.8, abs=0.01)
    assert (visible == 17).double().mean().item() == pytest.approx(0.1, abs=0.01)
    others = visible[(visible != MASK_ID) & (visible != 17)]
    assert 0 <= others.min() < 20
    assert N_TOKENS - 20 < others.max() < N_TOKENS


def test_unmasked_tokens_are_unchanged():
    texts = torch.randint(0, N_TOKENS, (11, 29), generator=torch.Generator().manual_seed(0))
    is_target = mask_tokens(texts, 0.5, N_TOKENS, MASK_ID, seed=1)
    assert torch.equal(is_target.inputs[~is_target.is_target], texts[~is_target.is_target])
    assert torch.equal(is_target.targets, texts[is_target.is_target])
