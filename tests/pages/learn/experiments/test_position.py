"""Position: orders, tables, rotations and longer texts against formulas, records and loops."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import LatentConfig, Transformer, attend
from attention_core.model.original_transformer import sinusoids
from attention_core.positions.scaling import (
    DynamicScaling,
    LinearScaling,
    RopeScaling,
    YarnScaling,
)
from pages.learn.position.experiment import longer
from pages.learn.position.experiment.distances import (
    by_distance,
    cosines,
    dot_products,
)
from pages.learn.position.experiment.order import in_two_orders
from pages.learn.position.experiment.turned import (
    before_turning,
    pair_scores,
    scores,
    turned,
)
from tests.helpers.tiny_models import TINY, build

CLOSE = {"atol": 1e-5, "rtol": 0.0}
ORDER = [3, 0, 4, 1, 2]


def ids(n: int, seed: int = 3) -> torch.Tensor:
    return torch.randint(79, (n,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", TINY)
def test_without_positions_the_outputs_are_reordered_alike(name: str):
    model, tokens = build(name), ids(5)
    without = in_two_orders(model, tokens, ORDER, positions=False)
    assert without.function_first.shape == (5, model.config.d_model)
    assert_close(without.order_first, without.function_first, **CLOSE)
    assert in_two_orders(model, tokens, ORDER, positions=True).difference > 0.01


@pytest.mark.parametrize("name", TINY)
def test_the_outputs_are_those_of_attention_without_a_mask(name: str):
    model, tokens = build(name), ids(5)
    layer = model(tokens[None], record=True).layers[0]
    q, k, v = layer.attention.q, layer.attention.k, layer.attention.v
    context = attend(q, k, v).context.transpose(1, 2).flatten(2)
    bias = model.blocks[0].attention.out.bias
    expected = context @ model.out_weight(0) + (0 if bias is None else bias)
    with_positions = in_two_orders(model, tokens, ORDER, positions=True)
    assert_close(with_positions.function_first, expected[0, ORDER], **CLOSE)


@pytest.mark.parametrize(
    ("scaling", "trained"), [(None, 43), (LinearScaling(4.0), 11), (YarnScaling(4.0, 9), 9)]
)
def test_the_trained_length_is_that_before_the_scaling(scaling: RopeScaling | None, trained: int):
    config = replace(TINY["llama"], rope_scaling=scaling)  # its context is of 43 tokens
    assert longer.trained_length(config) == trained


def test_an_order_holds_every_place_once():
    with pytest.raises(ValueError, match=r"5 tokens must hold each once, got \[0, 0, 1, 2, 3\]"):
        in_two_orders(build("bert"), ids(5), [0, 0, 1, 2, 3], positions=False)


def test_pairs_at_each_distance():
    values = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    found = by_distance(values)
    for distance in range(6):
        pairs = [float(values[i, i + distance]) for i in range(6 - distance)]
        assert float(found.mean[distance]) == pytest.approx(sum(pairs) / len(pairs), abs=1e-6)
        assert float(found.low[distance]) == min(pairs)
        assert float(found.high[distance]) == max(pairs)
        assert float(found.spread[distance]) == pytest.approx(max(pairs) - min(pairs))
    with pytest.raises(ValueError, match=r"got \(6, 5\)"):
        by_distance(values[:, :5])


def test_cosines_are_those_of_torch():
    table = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    expected = torch.nn.functional.cosine_similarity(table[:, None], table[None], dim=-1)
    assert_close(cosines(table), expected, **CLOSE)


@pytest.mark.parametrize("width", [4, 10, 64])
def test_dot_products_of_sinusoids_depend_on_the_distance_only(width: int):
    """As sin a sin b + cos a cos b = cos(a - b), summed over the column pairs."""
    found = by_distance(dot_products(sinusoids(40, width)))
    assert float(found.spread.max()) < 1e-4
    for distance in (0, 1, 7, 39):
        expected = sum(math.cos(distance / 1e4 ** (2 * i / width)) for i in range(width // 2))
        assert float(found.mean[distance]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "llama-tied"])
def test_turned_vectors_are_those_that_the_model_compares(name: str):
    model = build(name)
    config, n = model.config, 9
    layer = model(ids(n)[None], record=True).layers[1]
    for head in (0, config.n_heads - 1):
        queries, keys = before_turning(layer, config, head)
        for query, key in ((8, 3), (5, 5), (7, 0)):
            here = torch.tensor([key]), torch.tensor([query - key])
            q, k = turned(queries[query], keys[key], *here, config.rope_theta)
            assert_close(q[0], layer.attention.q[0, head, query], **CLOSE)
            kv_head = head // config.group_size
            assert_close(k[0], layer.attention.k[0, kv_head, key], **CLOSE)
            score = scores(queries[query], keys[key], *here, config.rope_theta)
            assert_close(score[0], layer.attention.scores[0, head, query, key], **CLOSE)
            assert_close(pair_scores(q, k).sum(-1), score, **CLOSE)
        assert queries.shape == keys.shape == (n, config.d_head)


def test_what_a_pair_adds_is_a_product_of_complex_numbers():
    """RoFormer, equation 12: Re(q k* e^(i m theta)), m the distance."""
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 12, generator=generator)
    places, distances = torch.tensor([0, 3, 50, 700]), torch.tensor([4, 4, 4, 30])
    parts = pair_scores(*turned(q, k, places, distances, 500.0))
    for row, distance in enumerate(distances.tolist()):
        for pair in range(6):
            first, second = (complex(float(x[pair]), float(x[pair + 6])) for x in (q, k))
            angle = distance * 500.0 ** (-2 * pair / 12)
            turn = complex(math.cos(angle), math.sin(angle))
            expected = (first * second.conjugate() * turn).real
            # angles are float32: at 700 radians they are rounded to 6e-5
            assert float(parts[row, pair]) == pytest.approx(expected, abs=5e-4)


def test_a_scaled_pair_is_the_end_of_a_text_of_its_own():
    """Dynamic scaling turns a pair by the frequencies of the text that ends with its query."""
    scaling = DynamicScaling(4.0, 10)
    model = build("llama")
    scaled = Transformer(replace(model.config, rope_scaling=scaling)).requires_grad_(False)
    scaled.load_state_dict(model.state_dict())
    for n in (6, 25):
        layer = scaled(ids(n)[None], record=True).layers[0]
        queries, keys = before_turning(layer, scaled.config, 2)
        score = scores(
            queries[-1], keys[1], torch.tensor([1]), torch.tensor([n - 2]),
            scaled.config.rope_theta, scaling,
        )  # fmt: skip
        assert_close(score[0], layer.attention.scores[0, 2, -1, 1], **CLOSE)


def test_what_has_no_vectors_to_turn():
    model = build("llama")
    layer = model(ids(3)[None], record=True).layers[0]
    with pytest.raises(ValueError, match="head must be 0 to 5, got 6"):
        before_turning(layer, model.config, 6)
    sizes = LatentConfig(kv_rank=4, nope_head_size=6, rope_head_size=4, v_head_size=5)
    config = replace(model.config, latent=sizes, n_kv_heads=None, head_size=None)
    latent = Transformer(config).requires_grad_(False)
    record = latent(ids(3)[None], record=True).layers[0]
    with pytest.raises(ValueError, match="latent attention has no queries"):
        before_turning(record, config, 0)


def test_turns_and_reach():
    assert_close(longer.turns(4, 100.0, 200), torch.tensor([200.0, 20.0]) / (2 * math.pi))
    for name, scaling in longer.scalings(4.0, 50).items():
        found = longer.reach(12, 900.0, 50, 200, scaling)
        scaled = longer.frequencies(12, 900.0, 200, scaling)
        plain = longer.frequencies(12, 900.0, 200, None)
        assert_close(found, 4 * scaled / plain)
        if name == longer.PLAIN:
            assert_close(found, torch.full((6,), 4.0))
        elif name == longer.LINEAR:
            assert_close(found, torch.ones(6))
        else:  # the fastest pair is left alone, the slowest stays within the training
            assert float(found[0]) == pytest.approx(4.0)
            assert float(found[-1]) <= 1.0001


@pytest.mark.parametrize(
    "scaling", [None, DynamicScaling(4.0, 50), YarnScaling(4.0, 50)], ids=["none", "ntk", "yarn"]
)
def test_what_slow_pairs_add(scaling: RopeScaling | None):
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 12, generator=generator)
    distances = torch.tensor([0, 10, 49, 120, 199])
    found = longer.slow_scores(q, k, distances, 900.0, 50, scaling)
    slow = [pair for pair in range(6) if 50 * 900.0 ** (-2 * pair / 12) / (2 * math.pi) < 1]
    assert slow == [2, 3, 4, 5]
    factor = 1.0 if scaling is None else scaling.cosine_factor**2
    for distance, score in zip(distances.tolist(), found.tolist(), strict=True):
        speeds = longer.frequencies(12, 900.0, distance + 1, scaling).tolist()
        expected = 0.0
        for pair in slow:
            first, second = (complex(float(x[pair]), float(x[pair + 6])) for x in (q, k))
            angle = distance * speeds[pair]
            turn = complex(math.cos(angle), math.sin(angle))
            expected += factor * (first * second.conjugate() * turn).real
        assert score == pytest.approx(expected, abs=2e-5)


def test_only_dynamic_scaling_needs_the_keys_turned_anew():
    for name, scaling in longer.scalings(3.0, 8).items():
        difference = longer.cache_difference(scaling, 8, 3)
        assert (difference > 0.1) == (name == longer.DYNAMIC), name
        assert name == longer.DYNAMIC or difference < 2e-5
    # within the trained length it is like the others
    assert longer.cache_difference(DynamicScaling(3.0, 24), 8, 3) < 2e-5
