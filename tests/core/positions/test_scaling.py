"""Scaled rotary positions compared with scalar loops, and invalid arguments."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import LatentConfig, Transformer
from attention_core.positions.rotary import rotary_angles
from attention_core.positions.scaling import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
    YarnScaling,
    plain_frequencies,
)
from tests.helpers.tiny_models import TINY, build

HEAD_SIZE, THETA, TRAINED = 12, 900.0, 50


def base_frequencies(pair: int) -> float:
    return THETA ** (-2 * pair / HEAD_SIZE)


def dynamic_frequencies(pair: int, factor: float, n_tokens: int) -> float:
    """Change the base, as in the posts that introduced dynamic scaling."""
    base_factor = factor * max(n_tokens, TRAINED) / TRAINED - (factor - 1)
    base = THETA * base_factor ** (HEAD_SIZE / (HEAD_SIZE - 2))
    return base ** (-2 * pair / HEAD_SIZE)


def yarn_frequencies(pair: int, factor: float, fast: float, slow: float) -> float:
    """Blend original and interpolated frequencies with a ramp, as in the paper's code."""
    first, last = (
        HEAD_SIZE * math.log(TRAINED / (turns * 2 * math.pi)) / (2 * math.log(THETA))
        for turns in (fast, slow)
    )
    first, last = max(math.floor(first), 0), min(math.ceil(last), HEAD_SIZE - 1)
    slowed = min(max((pair - first) / (last - first), 0), 1)
    return base_frequencies(pair) * (1 - slowed) + base_frequencies(pair) / factor * slowed


def llama3_frequencies(pair: int, factor: float, low: float, high: float) -> float:
    """Compare wavelengths, as in Meta's code."""
    wavelength = 2 * math.pi / base_frequencies(pair)
    if wavelength < TRAINED / high:
        return base_frequencies(pair)
    if wavelength > TRAINED / low:
        return base_frequencies(pair) / factor
    smooth = (TRAINED / wavelength - low) / (high - low)
    return (1 - smooth) * base_frequencies(pair) / factor + smooth * base_frequencies(pair)


@pytest.mark.parametrize("n_tokens", [1, 49, 50, 51, 200])
def test_frequencies_match_scalar_loops(n_tokens: int):
    cases = [
        (LinearScaling(4.0), lambda pair: base_frequencies(pair) / 4),
        (DynamicScaling(4.0, TRAINED), lambda pair: dynamic_frequencies(pair, 4.0, n_tokens)),
        (YarnScaling(4.0, TRAINED, 3.0, 0.2), lambda pair: yarn_frequencies(pair, 4.0, 3.0, 0.2)),
        (
            Llama3Scaling(4.0, TRAINED, 0.2, 3.0),
            lambda pair: llama3_frequencies(pair, 4.0, 0.2, 3.0),
        ),
    ]
    for scaling, expected in cases:
        ours = scaling.frequencies(
            plain_frequencies(HEAD_SIZE, THETA), THETA, torch.tensor([n_tokens])
        )
        expected_frequencies = torch.tensor([expected(pair) for pair in range(HEAD_SIZE // 2)])
        assert_close(ours.flatten(), expected_frequencies, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("name", ["llama", "llama-tied"])
def test_linear_scaling_equals_scaled_positions(name: str):
    """Linear scaling by 2 at doubled positions gives the unscaled model's angles."""
    model = build(name)
    scaled = Transformer(replace(model.config, rope_scaling=LinearScaling(2.0)))
    scaled.load_state_dict(model.state_dict())
    scaled.requires_grad_(False)
    tokens = torch.randint(89, (2, 15), generator=torch.Generator().manual_seed(2))
    position_ids = torch.arange(15).expand(2, -1)
    doubled_logits = scaled(tokens, positions=2 * position_ids).logits
    assert_close(doubled_logits, model(tokens).logits, atol=1e-5, rtol=0.0)
    assert float((scaled(tokens).logits - model(tokens).logits).abs().max()) > 0.1


def test_yarn_scales_up_cosines_and_sines():
    position_ids, scaling = torch.arange(7), YarnScaling(8.0, TRAINED)
    cos, sin = rotary_angles(position_ids, HEAD_SIZE, THETA, torch.float32, scaling)
    lengths = (cos**2 + sin**2).sqrt()
    assert_close(lengths, torch.full_like(lengths, 0.1 * math.log(8) + 1))
    plain_cos, plain_sin = rotary_angles(position_ids, HEAD_SIZE, THETA, torch.float32)
    assert_close(plain_cos**2 + plain_sin**2, torch.ones(7, HEAD_SIZE))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearScaling(0.5), r"factor.*0\.5"),
        (lambda: LinearScaling(math.nan), "factor.*nan"),
        (lambda: DynamicScaling(2.0, 0), "trained_length.*0"),
        (lambda: YarnScaling(2.0, 9, 1.0, 2.0), r"1\.0.*2\.0"),
        (lambda: YarnScaling(2.0, 9, attention_factor=0.0), r"attention_factor.*0\.0"),
        (lambda: YarnScaling(2.0, 9, truncate=1), "truncate.*1"),
        (lambda: Llama3Scaling(2.0, 9, 4.0, 4.0), r"high_freq_factor.*4\.0"),
    ],
)
def test_rejects_invalid_scalings(make, message: str):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama", {"rope_scaling": 2.0}, r"rope_scaling.*2\.0"),
        ("gpt2", {"rope_scaling": LinearScaling(2.0)}, "'learned'"),
        ("llama", {"rope_scaling": DynamicScaling(2.0, 9), "head_size": 2}, "4, got 2"),
        ("llama", {"rope_scaling": YarnScaling(2.0, 9), "rope_theta": 1.0}, r"rope_theta.*1\.0"),
        (
            "llama",
            {"rope_scaling": LinearScaling(2.0), "latent": LatentConfig(3, 5, 2, 4)}
            | {"n_kv_heads": None, "head_size": None},
            "latent",
        ),
    ],
)
def test_rejects_models_that_cannot_be_scaled(name: str, changes: dict, message: str):
    with pytest.raises(ValueError, match=message):
        replace(TINY[name], **changes)


@pytest.mark.parametrize("trained", [1, 2, 10**8])
@pytest.mark.parametrize("theta", [1.0 + 1e-15, 1e4, 1e300])
@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_extreme_values_stay_finite(trained: int, theta: float, factor: float):
    n_tokens = torch.tensor([10**8])
    scalings: list[RopeScaling] = [
        LinearScaling(factor),
        DynamicScaling(factor, trained),
        YarnScaling(factor, trained, 1e6, 1e-6),
        YarnScaling(factor, trained, 1e6, 1e6, truncate=False),
        Llama3Scaling(factor, trained, 1e-6, 1e6),
    ]
    for scaling in scalings:
        ours = scaling.frequencies(plain_frequencies(6, theta), theta, n_tokens)
        assert bool(ours.isfinite().all()), scaling
        assert float(ours.min()) >= 0
        assert float(ours.max()) <= 1 + 1e-6
