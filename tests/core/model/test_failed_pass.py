"""A failed pass leaves its cache unchanged, and the next pass still works."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Hooks, Transformer
from attention_core.attend import AttentionRecord
from tests.helpers.reference_models import TOLERANCE
from tests.helpers.tiny_models import TINY

WINDOW = 5


class Failure(Exception):
    pass


def model(window: int | None) -> Transformer:
    torch.manual_seed(2)
    core = Transformer(replace(TINY["llama"], window=window)).eval().requires_grad_(False)
    for parameter in core.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.dim() == 1) * 0.5)
    return core


def fail(*arguments: object) -> None:
    raise Failure


@pytest.mark.parametrize("n_new", [1, WINDOW + 2])
@pytest.mark.parametrize("n_cached", [2, WINDOW + 4])
@pytest.mark.parametrize("window", [None, WINDOW])
@pytest.mark.parametrize("where", ["before_layer", "edit_heads", "mlp", "final_norm"])
@pytest.mark.parametrize("layer", [0, 1])
def test_cache_is_unchanged(where: str, layer: int, window: int | None, n_cached: int, n_new: int):
    core = model(window)
    ids = torch.randint(89, (1, n_cached + n_new), generator=torch.Generator().manual_seed(3))
    cache, hooks, handle = core.new_cache(1, ids.shape[1]), Hooks(), None
    core(ids[:, :n_cached], cache=cache)
    state, stored = cache.state, [tensor.clone() for tensor in cache.layer(layer)]

    def at_layer(index: int, record: AttentionRecord | None = None) -> None:
        if index == layer:
            raise Failure

    if where in ("before_layer", "edit_heads"):
        hooks = Hooks(**{where: at_layer})
    else:
        module = core.final_norm if where == "final_norm" else core.blocks[layer].mlp
        handle = module.register_forward_hook(fail)
    with pytest.raises(Failure):
        core(ids[:, n_cached:], cache=cache, hooks=hooks)
    assert cache.state == state
    for before, after in zip(stored, cache.layer(layer), strict=True):
        assert torch.equal(before, after)
    if handle is not None:
        handle.remove()
    expected = core(ids).logits[:, n_cached:]
    assert_close(core(ids[:, n_cached:], cache=cache).logits, expected, **TOLERANCE)
