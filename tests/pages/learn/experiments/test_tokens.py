"""The parts that add up to the input of layer 0."""

import pytest
import torch
from torch.testing import assert_close

from pages.learn.tokens.experiment import check_input
from tests.helpers.tiny_models import TINY, build


@pytest.mark.parametrize("name", TINY)
def test_parts_add_up_to_the_layer_0_input(name: str):
    model = build(name)
    ids = torch.randint(model.config.vocab_size, (2, 7), generator=torch.Generator().manual_seed(1))
    parts = model.embed(ids, torch.arange(7))
    assert (parts.position is not None) == (model.config.positions == "learned")
    assert (parts.segment is not None) == (model.config.n_segments > 0)
    total = parts.token.clone()
    for part in (parts.segment, parts.position):
        if part is not None:
            total = total + part
    assert_close(parts.total, total, atol=0, rtol=0)
    entering = model(ids, record=True).hidden_states[0]
    assert_close(parts.layer_input, entering, atol=0, rtol=0)
    if model.embedding_norm is None:
        assert_close(parts.layer_input, parts.total, atol=0, rtol=0)
    else:
        assert not torch.allclose(parts.layer_input, parts.total)
    if parts.position is not None:
        later = model.embed(ids, torch.arange(1, 8))
        assert_close(later.position[:-1], parts.position[1:], atol=0, rtol=0)
        assert_close(later.token, parts.token, atol=0, rtol=0)


def test_custom_segments():
    (name,) = (name for name, config in TINY.items() if config.n_segments)
    encoder = build(name)
    ids = torch.tensor([[1, 2, 3]])
    first, second = (
        encoder.embed(ids, torch.arange(3), torch.full_like(ids, segment)) for segment in (0, 1)
    )
    assert_close(first.layer_input, encoder.embed(ids, torch.arange(3)).layer_input)
    assert_close(second.segment[0, 0], encoder.segments[1])


@pytest.mark.parametrize("name", TINY)
def test_input_is_reassembled(name: str):
    model = build(name)
    ids = torch.randint(model.config.vocab_size, (2, 7), generator=torch.Generator().manual_seed(1))
    check = check_input(model, ids)
    assert_close(check.layer_input, model(ids, record=True).hidden_states[0], atol=0, rtol=0)
    assert check.difference == float((check.resummed - check.layer_input).abs().max()) < 1e-5
