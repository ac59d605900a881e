"""The transformer: invariants of its record, dtypes, invalid arguments."""

import pytest
import torch
from torch.testing import assert_close

from attention_core import PRESETS, Transformer, forward_flops
from attention_core.model.layers import Projection
from tests.helpers.tiny_models import TINY, build


def tokens(model: Transformer, batch: int = 2, length: int = 11) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


@pytest.mark.parametrize("name", TINY)
def test_recording_does_not_change_results(name: str):
    model = build(name)
    plain, record = model(tokens(model)), model(tokens(model), record=True)
    assert plain.records == plain.hidden_states == ()
    assert_close(plain.hidden, record.hidden, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", TINY)
def test_16_bit_dtypes(name: str, dtype: torch.dtype):
    model = build(name)
    ids = tokens(model)
    exact = model(ids).hidden
    half = build(name).to(dtype)
    hidden = half(ids).hidden
    assert hidden.dtype == dtype
    # the relative error is a few units of precision (2**-11 and 2**-8) per layer
    error = (hidden.float() - exact).norm() / exact.norm()
    assert error < {torch.float16: 0.02, torch.bfloat16: 0.15}[dtype]


@pytest.mark.parametrize("name", TINY)
def test_forward_pass_does_not_synchronize(name: str):
    """Meta tensors have no values, so reading one on the host would raise an error."""
    model = build(name).to("meta")
    ids = tokens(model).to("meta")
    cache = model.new_cache(2, 11) if model.config.causal else None
    output = model(ids, cache=cache, attention_mask=torch.ones_like(ids), record=True)
    assert output.hidden.device.type == output.records[-1].weights.device.type == "meta"


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize("name", TINY)
def test_moving_the_model_moves_all_tensors(name: str, device: str):
    model = build(name)
    ids = tokens(model)
    exact = model(ids).hidden
    change = model.to(device, torch.float64)
    cache = change.new_cache(2, 11) if model.config.causal else None
    hidden = change(ids.to(device), cache=cache).hidden
    assert (hidden.device.type, hidden.dtype) == (device, torch.float64)
    assert_close(hidden.float().cpu(), exact, atol=1e-4, rtol=1e-4)


def test_presets_have_the_published_parameter_counts():
    """Check GPT-2's four sizes against OpenAI's; a tied matrix counts once."""
    published = {
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
        "smollm2-135m": 134_515_008,
    }
    for name, expected in published.items():
        with torch.device("meta"):
            model = Transformer(PRESETS[name])
        assert sum(p.numel() for p in model.parameters()) == expected


def test_flops_match_counted_matrix_products():
    model = build("llama")
    config = model.config
    counts = []

    def count(_, inputs, output):
        rows = inputs[0].shape[0] * inputs[0].shape[1]
        counts.append(2 * rows * inputs[0].shape[-1] * output.shape[-1])

    for module in model.modules():
        if isinstance(module, Projection):
            module.register_forward_hook(count)
    n_new, n_keys = 3, 11
    cache = model.new_cache(1, n_keys)
    ids = tokens(model, batch=1)
    model(ids[:, : n_keys - n_new], cache=cache)
    counts.clear()
    model(ids[:, n_keys - n_new :], cache=cache)
    attention = config.n_layers * config.n_heads * n_new * n_keys * config.d_head * 2 * 2
    vocabulary = 2 * config.d_model * config.vocab_size
    assert forward_flops(config, n_new, n_keys) == sum(counts) + attention + vocabulary
