"""Every head statistic compared with a loop over its definition.

The induction score is also tested on an induction head built by hand.
"""

import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer, gpt2_config
from attention_core.analysis.head_statistics import (
    STATISTICS,
    TextWeights,
    duplicate_score,
    induction_score,
    repeated_scores,
    repeated_sequence,
)
from attention_core.masks import causal_mask
from tests.helpers.tiny_models import build

LAYERS, HEADS, TOKENS = 2, 3, 7
# without the special tokens at both ends, 5 occurs three times and 8 twice
IDS = [1, 5, 8, 5, 8, 5, 5]
SPECIAL = [True, False, False, False, False, False, True]


def text(*, causal: bool, ids: list[int] = IDS, special: list[bool] = SPECIAL) -> TextWeights:
    generator = torch.Generator().manual_seed(3)
    scores = 2 * torch.randn(LAYERS, HEADS, len(ids), len(ids), generator=generator)
    if causal:
        scores.masked_fill_(~causal_mask(len(ids), len(ids)), -math.inf)
    return TextWeights(scores.softmax(-1), torch.tensor(ids), torch.tensor(special), causal)


def expected_statistic(name: str, w: list[list[float]], causal: bool) -> float:
    """Compute a statistic from its definition in plain Python."""
    n = len(w)
    rows = []
    for i in range(n):
        keys = range(i + 1) if causal else range(n)
        if len(keys) < 2:
            continue
        bits = -sum(w[i][j] * math.log2(w[i][j]) for j in keys if w[i][j] > 0)
        twins = [j for j in keys if j != i and IDS[j] == IDS[i] and not SPECIAL[j]]
        value: float | None = {
            "entropy": bits,
            "evenness": bits / math.log2(len(keys)),
            "distance": sum(w[i][j] * abs(i - j) for j in keys),
            "first": w[i][0],
            "special": sum(w[i][j] for j in keys if SPECIAL[j]),
            "itself": w[i][i],
            "previous": w[i][i - 1] if i > 0 else None,
            "next": w[i][i + 1] if i + 1 < n and not causal else None,
            "same": sum(w[i][j] for j in twins) if twins and not SPECIAL[i] else None,
        }[name]
        rows.append(value)
    results = [value for value in rows if value is not None]
    return sum(results) / len(results) if results else math.nan


ON_TEXT = [statistic for statistic in STATISTICS if statistic.measure is not None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("statistic", ON_TEXT, ids=lambda s: s.name)
def test_each_statistic_matches_its_definition(statistic, causal: bool):
    visible = text(causal=causal)
    measurements = statistic.measure(visible)
    assert measurements.shape == (LAYERS, HEADS)
    for layer in range(LAYERS):
        for head in range(HEADS):
            expected = expected_statistic(
                statistic.name, visible.weights[layer, head].tolist(), causal
            )
            assert_close(
                float(measurements[layer, head]), expected, atol=1e-5, rtol=0, equal_nan=True
            )
    if statistic.name == "next" and causal:
        assert measurements.isnan().all()
    else:
        assert (measurements >= statistic.low).all()
        assert statistic.high is None or (measurements <= statistic.high).all()


def test_undefined_statistics_are_nan():
    plain = text(causal=True, ids=[4, 2, 9], special=[False] * 3)
    for statistic in ON_TEXT:
        lacking = statistic.name in ("special", "next", "same")
        assert statistic.measure(plain).isnan().all() == lacking, statistic.name


def test_uniform_head_has_low_scores():
    n = 6
    uniform = causal_mask(2 * n, 2 * n) / torch.arange(1, 2 * n + 1)[:, None]
    expected = sum(1 / (i + 1) for i in range(n, 2 * n)) / n
    assert float(induction_score(uniform, n)) == pytest.approx(expected)
    assert float(duplicate_score(uniform, n)) == pytest.approx(expected)


def test_repeated_sequence():
    ids = repeated_sequence(9, range(100, 140), seed=4)
    assert ids.shape == (18,)
    assert torch.equal(ids[:9], ids[9:])
    assert len(set(ids.tolist())) == 9
    assert all(100 <= i < 140 for i in ids.tolist())
    assert torch.equal(ids, repeated_sequence(9, range(100, 140), seed=4))
    assert not torch.equal(ids, repeated_sequence(9, range(100, 140), seed=5))


VOCABULARY, POSITIONS, SHARP = 13, 12, 60.0


def induction_circuit() -> Transformer:
    """Two attention layers that form an induction circuit.

    A state has three parts: the token one-hot, the position one-hot, and the previous token, which
    head 0 of layer 0 writes there by attending one position back. Head 0 of layer 1 finds the
    position whose previous token is its own token. The second head of each layer is uniform. All
    weights that aren't set are zero.
    """
    config = gpt2_config(
        vocab_size=VOCABULARY,
        context_length=POSITIONS,
        d_model=2 * VOCABULARY + POSITIONS,
        n_layers=2,
        n_heads=2,
        d_ff=8,
    )
    model = Transformer(config).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
    tokens = slice(0, VOCABULARY)
    positions = slice(VOCABULARY, VOCABULARY + POSITIONS)
    before = slice(VOCABULARY + POSITIONS, 2 * VOCABULARY + POSITIONS)
    model.unembedding[tokens] = torch.eye(VOCABULARY)
    model.positions[:, positions] = torch.eye(POSITIONS)
    width, d_head = config.d_model, config.d_head
    q, k, v = (part * width for part in range(3))

    look_back = model.blocks[0].attention
    for i in range(1, POSITIONS):
        look_back.qkv.matrix[VOCABULARY + i, q + i - 1] = SHARP
    look_back.qkv.matrix[positions, k : k + POSITIONS] = torch.eye(POSITIONS)
    look_back.qkv.matrix[tokens, v : v + VOCABULARY] = torch.eye(VOCABULARY)
    look_back.out.matrix[:VOCABULARY, before] = 0.1 * torch.eye(VOCABULARY)

    look_up = model.blocks[1].attention
    look_up.qkv.matrix[tokens, q : q + VOCABULARY] = SHARP * torch.eye(VOCABULARY)
    look_up.qkv.matrix[before, k : k + VOCABULARY] = torch.eye(VOCABULARY)
    assert d_head >= max(VOCABULARY, POSITIONS)
    return model


def test_handmade_induction_head_scores_one():
    model, n = induction_circuit(), 5
    # position 0 has no previous token, so it attends to itself
    start = VOCABULARY - 1
    ids = repeated_sequence(n, range(start), seed=2)
    scores = repeated_scores(model, ids, before=(start,))
    assert scores.induction.shape == scores.duplicate.shape == (2, 2)
    assert float(scores.induction[1, 0]) > 0.999
    assert float(scores.duplicate[1, 0]) < 0.001
    # layer 0 can't do induction: head 0 attends to the previous token, head 1 uniformly
    assert float(scores.induction[0, 0]) < 0.001
    uniform = sum(1 / (i + 1) for i in range(1 + n, 1 + 2 * n)) / n
    assert float(scores.induction[0, 1]) == pytest.approx(uniform, abs=1e-5)
    whole = torch.cat([torch.tensor([start]), ids])
    weights = model(whole[None], record=True).records[0].weights[0, 0]
    assert all(float(weights[i, j]) > 0.999 for j, i in pairwise(range(2 * n + 1)))


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_model_scores_match_its_attention_weights(name: str):
    model = build(name)
    ids = repeated_sequence(8, range(10, 60), seed=1)
    before, after = ((3,), (4, 5)) if name == "bert" else ((), ())
    scores = repeated_scores(model, ids, before=before, after=after)
    whole = torch.tensor([[*before, *ids.tolist(), *after]])
    for layer, record in enumerate(model(whole, record=True).records):
        for head in range(model.config.n_heads):
            w = record.weights[0, head]
            second = [len(before) + 8 + i for i in range(8)]
            induction = sum(float(w[i, i - 7]) for i in second) / 8
            duplicate = sum(float(w[i, i - 8]) for i in second) / 8
            assert float(scores.induction[layer, head]) == pytest.approx(induction, abs=1e-5)
            assert float(scores.duplicate[layer, head]) == pytest.approx(duplicate, abs=1e-5)


def test_scores_of_a_16_bit_model_are_float32_means():
    model = build("gpt2").bfloat16()
    ids = repeated_sequence(8, range(10, 60), seed=1)
    scores = repeated_scores(model, ids)
    first = model(ids[None], record=True).records[0].weights[0].float()
    assert scores.induction.dtype == scores.duplicate.dtype == torch.float32
    assert_close(scores.duplicate[0], first.diagonal(-8, -2, -1).mean(-1), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("numbers", "call"),
    [
        ("n=6.*0", lambda: induction_score(torch.zeros(3, 10, 10), 6)),
        ("n=3.*-1", lambda: induction_score(torch.zeros(3, 10, 10), 3, start=-1)),
        ("n=4", lambda: repeated_sequence(4, [7, 7, 8, 9], seed=0)),
        ("repeated", lambda: repeated_scores(build("gpt2"), torch.tensor([1, 2, 2, 1]))),
    ],
)
def test_rejects_invalid_arguments(numbers: str, call):
    with pytest.raises(ValueError, match=numbers):
        call()
