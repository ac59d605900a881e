"""The `edit` hook can replace every tensor, and later tensors depend on the edit."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import Hooks, Transformer
from tests.helpers.attention_variants import tokens
from tests.helpers.tiny_models import TINY, build

OF_LAYER = ("input", "attention_output", "mlp_hidden", "mlp_output", "output")
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def double(name: str, layer: int | None) -> Hooks:
    return Hooks(edit=lambda n, at, x: 2 * x if (n, at) == (name, layer) else None)


@pytest.mark.parametrize("name", TINY)
def test_hook_is_called_for_every_tensor_in_order(name: str):
    model, calls = build(name), list[tuple[str, int | None, tuple[int, ...]]]()
    hooks = Hooks(edit=lambda n, layer, x: calls.append((n, layer, tuple(x.shape))))
    output = model(tokens(model), hooks=hooks)
    layers = [(n, layer) for layer in range(model.config.n_layers) for n in OF_LAYER]
    ends = [("hidden", None), ("logits", None)][: 2 if output.logits is not None else 1]
    assert [call[:2] for call in calls] == [("embedding", None), *layers, *ends]
    batch, n_tokens = tokens(model).shape
    sizes = {"mlp_hidden": model.config.d_ff, "logits": model.config.vocab_size}
    for n, _, shape in calls:
        assert shape == (batch, n_tokens, sizes.get(n, model.config.d_model))


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("tensor", OF_LAYER)
def test_later_tensors_are_computed_from_the_edit(name: str, tensor: str):
    model = build(name)
    ids = tokens(model)
    plain = model(ids, record=True)
    edited = model(ids, record=True, hooks=double(tensor, 0))
    field = "attention.output" if tensor == "attention_output" else tensor

    def get_tensor(output, layer: int) -> Tensor:
        value = output.layers[layer]
        for part in field.split("."):
            value = getattr(value, part)
        return value

    assert_close(get_tensor(edited, 0), 2 * get_tensor(plain, 0), **CLOSE)
    # running the later layers from the recorded state gives the same result
    resumed = model.resume(edited.layers[0].output, 1)
    assert_close(edited.hidden, resumed, **CLOSE)
    assert not torch.allclose(edited.hidden, plain.hidden, atol=1e-4)
    assert_close(model(ids, hooks=double(tensor, 0)).hidden, edited.hidden, **CLOSE)


@pytest.mark.parametrize("tensor", ["embedding", "hidden", "logits"])
def test_tensors_outside_the_layers_can_be_edited(decoder: Transformer, tensor: str):
    ids = tokens(decoder)
    plain = decoder(ids, record=True)
    edited = decoder(ids, record=True, hooks=double(tensor, None))
    if tensor == "embedding":
        assert_close(edited.layers[0].input, 2 * plain.layers[0].input, **CLOSE)
    else:
        assert_close(getattr(edited, tensor), 2 * getattr(plain, tensor), **CLOSE)
        assert_close(edited.logits, 2 * plain.logits, **CLOSE)


def test_edit_in_a_pass_with_a_cache(decoder: Transformer):
    ids = tokens(decoder)
    whole = decoder(ids, hooks=double("mlp_output", 0)).logits
    cache = decoder.new_cache(*ids.shape)
    parts = [
        decoder(part, cache=cache, hooks=double("mlp_output", 0)).logits
        for part in ids.split(2, dim=1)
    ]
    assert_close(torch.cat(parts, dim=1), whole, **CLOSE)


@pytest.mark.parametrize("value", [3, torch.ones(2), torch.ones(1, 1, 1).double()])
def test_rejects_invalid_return_values(value: object):
    model = build("gpt2")
    hooks = Hooks(edit=lambda name, layer, x: value if layer == 1 else None)  # type: ignore
    with pytest.raises(ValueError, match="input of layer 1"):
        model(tokens(model), hooks=hooks)
