"""Compare token order, position tables, rotations and long texts to formulas."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.positions.scaling import DynamicScaling, LinearScaling, RopeScaling, YarnScaling
from pages.learn.position.experiment import context_extension
from pages.learn.position.experiment.order import compare_orders
from pages.learn.position.experiment.rotation import (
    pair_scores,
    rotate_pair,
    scores,
    unrotated_vectors,
)
from tests.helpers.tiny_models import TINY, build

CLOSE = {"atol": 1e-5, "rtol": 0.0}
ORDER = [3, 0, 4, 1, 2]


def ids(n: int, seed: int = 3) -> torch.Tensor:
    return torch.randint(79, (n,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", TINY)
def test_without_positions_outputs_are_permuted_like_inputs(name: str):
    model, tokens = build(name), ids(5)
    without = compare_orders(model, tokens, ORDER, positions=False)
    assert without.output_permuted.shape == (5, model.config.d_model)
    assert_close(without.input_permuted, without.output_permuted, **CLOSE)
    assert compare_orders(model, tokens, ORDER, positions=True).difference > 0.01


@pytest.mark.parametrize(
    ("scaling", "trained"), [(None, 43), (LinearScaling(4.0), 11), (YarnScaling(4.0, 9), 9)]
)
def test_trained_length_excludes_rope_scaling(scaling: RopeScaling | None, trained: int):
    config = replace(TINY["llama"], rope_scaling=scaling)  # The context length is 43 tokens.
    assert context_extension.trained_length(config) == trained


@pytest.mark.parametrize("name", ["llama", "llama-tied"])
def test_rotated_vectors_match_the_model(name: str):
    model = build(name)
    config, n = model.config, 9
    layer = model(ids(n)[None], record=True).layers[1]
    for head in (0, config.n_heads - 1):
        queries, keys = unrotated_vectors(layer, config, head)
        for query, key in ((8, 3), (5, 5), (7, 0)):
            positions = torch.tensor([key]), torch.tensor([query - key])
            q, k = rotate_pair(queries[query], keys[key], *positions, config.rope_theta)
            assert_close(q[0], layer.attention.q[0, head, query], **CLOSE)
            kv_head = head // config.group_size
            assert_close(k[0], layer.attention.k[0, kv_head, key], **CLOSE)
            score = scores(queries[query], keys[key], *positions, config.rope_theta)
            assert_close(score[0], layer.attention.scores[0, head, query, key], **CLOSE)
            assert_close(pair_scores(q, k).sum(-1), score, **CLOSE)
        assert queries.shape == keys.shape == (n, config.d_head)


def test_pair_contribution_is_a_complex_product():
    """RoFormer, equation 12: Re(q k* e^(i m theta)) at distance m."""
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 12, generator=generator)
    places, distances = torch.tensor([0, 3, 50, 700]), torch.tensor([4, 4, 4, 30])
    parts = pair_scores(*rotate_pair(q, k, places, distances, 500.0))
    for row, distance in enumerate(distances.tolist()):
        for pair in range(6):
            first, second = (complex(float(x[pair]), float(x[pair + 6])) for x in (q, k))
            angle = distance * 500.0 ** (-2 * pair / 12)
            turn = complex(math.cos(angle), math.sin(angle))
            expected = (first * second.conjugate() * turn).real
            # Angles are float32. At 700 radians, their rounding error is 6e-5.
            assert float(parts[row, pair]) == pytest.approx(expected, abs=5e-4)


def test_scaled_pair_equals_the_end_of_a_shorter_text():
    """Dynamic scaling rotates a pair as if the text ended with its query."""
    scaling = DynamicScaling(4.0, 10)
    model = build("llama")
    scaled = Transformer(replace(model.config, rope_scaling=scaling)).requires_grad_(False)
    scaled.load_state_dict(model.state_dict())
    for n in (6, 25):
        layer = scaled(ids(n)[None], record=True).layers[0]
        queries, keys = unrotated_vectors(layer, scaled.config, 2)
        score = scores(
            queries[-1], keys[1], torch.tensor([1]), torch.tensor([n - 2]),
            scaled.config.rope_theta, scaling,
        )  # fmt: skip
        assert_close(score[0], layer.attention.scores[0, 2, -1, 1], **CLOSE)


@pytest.mark.parametrize(
    "scaling", [None, DynamicScaling(4.0, 50), YarnScaling(4.0, 50)], ids=["none", "ntk", "yarn"]
)
def test_slow_pair_contributions(scaling: RopeScaling | None):
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 12, generator=generator)
    distances = torch.tensor([0, 10, 49, 120, 199])
    result = context_extension.slow_scores(q, k, distances, 900.0, 50, scaling)
    slow = [pair for pair in range(6) if 50 * 900.0 ** (-2 * pair / 12) / (2 * math.pi) < 1]
    assert slow == [2, 3, 4, 5]
    factor = 1.0 if scaling is None else scaling.cosine_factor**2
    for distance, score in zip(distances.tolist(), result.tolist(), strict=True):
        speeds = context_extension.frequencies(12, 900.0, distance + 1, scaling).tolist()
        expected = 0.0
        for pair in slow:
            first, second = (complex(float(x[pair]), float(x[pair + 6])) for x in (q, k))
            angle = distance * speeds[pair]
            turn = complex(math.cos(angle), math.sin(angle))
            expected += factor * (first * second.conjugate() * turn).real
        assert score == pytest.approx(expected, abs=2e-5)
