"""Infinite or NaN results raise an error that names their first position."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attention_core import Transformer
from attention_core.analysis.ablation import logits_function
from attention_core.analysis.residual_stream import logit_lens
from attention_core.checks import NotFiniteError, require_finite
from tests.helpers.tiny_models import build

IDS = torch.arange(1, 8)[None]  # (1, 7)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("shape", [(5, 3), (4, 2, 5, 3)])
def test_error_names_the_first_position(number: float, shape: tuple[int, ...]):
    numbers = torch.zeros(shape)
    require_finite("states", numbers)
    numbers[..., 4, 0] = numbers[..., 3, 2] = number
    with pytest.raises(NotFiniteError, match="position 3 "):
        require_finite("states", numbers)
    with pytest.raises(NotFiniteError, match="position 12 "):
        require_finite("states", numbers, first=9)
    with pytest.raises(NotFiniteError, match="float32 on this text: the states"):
        require_finite("states", numbers, first=None)
    require_finite("states", numbers.to("meta"))


def test_overflow_after_the_layers():
    model = build("gpt2")
    # not inside a layer, because 0 times infinity would affect earlier positions
    late = (torch.arange(7) >= 5)[:, None]
    model.final_norm.register_forward_hook(
        lambda _, __, y: y.masked_fill(late[: y.shape[1]], math.inf)
    )
    assert model(IDS[:, :5]).hidden.isfinite().all()
    with pytest.raises(NotFiniteError, match="position 5 "):
        model(IDS)


@pytest.mark.parametrize("last_only", [False, True])
def test_overflow_of_logits_only(last_only: bool):
    model = build("llama")
    model.unembedding[:, 3] = 3e38
    with pytest.raises(NotFiniteError, match=f"position {6 if last_only else 0} .*logits"):
        model(IDS * 0 + 2, last_only=last_only)


def test_decode_steps_are_not_checked():
    """A check would synchronize with the device, so sampling rejects the logits instead."""
    model = build("llama")
    cache = model.new_cache(1, 9)
    model(IDS, cache=cache)
    model.unembedding[:, 3] = 3e38
    assert not model(IDS[:, :1], cache=cache).logits.isfinite().all()


def resume_overflow(model: Transformer) -> Tensor:
    model.blocks[1].mlp.down.matrix.fill_(3e38)
    return model.resume(torch.ones(1, 6, 24), 1)


def logit_lens_overflow(model: Transformer) -> Tensor:
    model.unembedding.fill_(3e38)
    return logit_lens(model, torch.randn(2, 6, 24))


def logits_overflow(model: Transformer) -> Tensor:
    model.unembedding.fill_(3e38)
    return logits_function(model)(torch.full((6, 24), 2.0))


@pytest.mark.parametrize("compute", [resume_overflow, logit_lens_overflow, logits_overflow])
def test_other_entry_points_check_results(compute: Callable[[Transformer], Tensor]):
    with pytest.raises(NotFiniteError):
        compute(build("gpt2"))
