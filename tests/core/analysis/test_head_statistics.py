"""Every statistic of a head against a loop over its definition; an induction head made by hand."""

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
# 5 comes three times, 8 twice; both ends are special, and 5 is once
IDS = [1, 5, 8, 5, 8, 5, 5]
SPECIAL = [True, False, False, False, False, False, True]


def text(*, causal: bool, ids: list[int] = IDS, special: list[bool] = SPECIAL) -> TextWeights:
    generator = torch.Generator().manual_seed(3)
    scores = 2 * torch.randn(LAYERS, HEADS, len(ids), len(ids), generator=generator)
    if causal:
        scores.masked_fill_(~causal_mask(len(ids), len(ids)), -math.inf)
    return TextWeights(scores.softmax(-1), torch.tensor(ids), torch.tensor(special), causal)


def by_hand(name: str, w: list[list[float]], causal: bool) -> float:
    """The definition of a statistic, said again in plain Python."""
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
    found = [value for value in rows if value is not None]
    return sum(found) / len(found) if found else math.nan


ON_TEXT = [statistic for statistic in STATISTICS if statistic.measure is not None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("statistic", ON_TEXT, ids=lambda s: s.name)
def test_each_statistic_against_its_definition(statistic, causal: bool):
    seen = text(causal=causal)
    measured = statistic.measure(seen)
    assert measured.shape == (LAYERS, HEADS)
    for layer in range(LAYERS):
        for head in range(HEADS):
            expected = by_hand(statistic.name, seen.weights[layer, head].tolist(), causal)
            assert_close(float(measured[layer, head]), expected, atol=1e-5, rtol=0, equal_nan=True)
    if statistic.name == "next" and causal:
        assert measured.isnan().all()
    else:
        assert (measured >= statistic.low).all()
        assert statistic.high is None or (measured <= statistic.high).all()


def test_what_a_text_lacks_is_nan():
    plain = text(causal=True, ids=[4, 2, 9], special=[False] * 3)
    for statistic in ON_TEXT:
        lacking = statistic.name in ("special", "next", "same")
        assert statistic.measure(plain).isnan().all() == lacking, statistic.name


@pytest.mark.parametrize("causal", [False, True])
def test_one_token_has_nothing_to_choose(causal: bool):
    alone = text(causal=causal, ids=[4], special=[False])
    assert all(statistic.measure(alone).isnan().all() for statistic in ON_TEXT)


def test_uniform_attention_is_even():
    uniform = TextWeights(
        causal_mask(6, 6) / torch.arange(1, 7)[:, None],
        torch.arange(6),
        torch.zeros(6, dtype=torch.bool),
        True,
    )
    measured = {s.name: float(s.measure(uniform)) for s in ON_TEXT}
    assert measured["evenness"] == pytest.approx(1)
    assert measured["first"] == pytest.approx(sum(1 / n for n in range(2, 7)) / 5)


def test_names_are_slugs_and_every_definition_is_said():
    names = [statistic.name for statistic in STATISTICS]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() for name in names)
    assert all(len(s.definition) > 40 and s.title for s in STATISTICS)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3, 7, 7\), \(6,\)"):
        TextWeights(text(causal=True).weights, torch.arange(6), torch.zeros(6).bool(), True)


def test_a_head_of_weights_that_is_an_induction_head():
    n, start = 5, 2
    size = start + 2 * n + 1
    weights = torch.zeros(HEADS, size, size)
    weights[:, :, 0] = 1
    for i in range(start + n, start + 2 * n):
        weights[0, i] = 0
        weights[0, i, i - n + 1] = 1
        weights[1, i] = 0
        weights[1, i, i - n] = 1
    assert induction_score(weights, n, start=start).tolist() == [1, 0, 0]
    assert duplicate_score(weights, n, start=start).tolist() == [0, 1, 0]


def test_a_head_that_looks_at_all_alike_scores_low():
    n = 6
    uniform = causal_mask(2 * n, 2 * n) / torch.arange(1, 2 * n + 1)[:, None]
    expected = sum(1 / (i + 1) for i in range(n, 2 * n)) / n
    assert float(induction_score(uniform, n)) == pytest.approx(expected)
    assert float(duplicate_score(uniform, n)) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "start"), [(1, 0), (6, 0), (5, 1), (3, -1)])
def test_copies_that_do_not_fit(n: int, start: int):
    with pytest.raises(ValueError, match=f"n={n} tokens from position {start}"):
        induction_score(torch.zeros(3, 10, 10), n, start=start)


def test_a_repeated_sequence():
    ids = repeated_sequence(9, range(100, 140), seed=4)
    assert ids.shape == (18,)
    assert torch.equal(ids[:9], ids[9:])
    assert len(set(ids.tolist())) == 9
    assert all(100 <= i < 140 for i in ids.tolist())
    assert torch.equal(ids, repeated_sequence(9, range(100, 140), seed=4))
    assert not torch.equal(ids, repeated_sequence(9, range(100, 140), seed=5))


@pytest.mark.parametrize("n", [1, 4])
def test_a_sequence_too_short_or_without_enough_tokens(n: int):
    with pytest.raises(ValueError, match=f"at most the 3 different ones of the vocabulary.*n={n}"):
        repeated_sequence(n, [7, 7, 8, 9], seed=0)


VOCABULARY, POSITIONS, SHARP = 13, 12, 60.0


def induction_circuit() -> Transformer:
    """Two layers of attention that are the induction circuit; the second head of each is uniform.

    A state holds three parts: the token one-hot, the position one-hot, and the token before, which
    layer 0 writes there: its head 0 looks one position back. Head 0 of layer 1 looks for the place
    whose token before is its own token. All weights that are not set are zero.
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


def test_an_induction_head_made_by_hand_scores_one():
    model, n = induction_circuit(), 5
    # a token that begins the text: position 0, which has none before it, takes itself for that
    start = VOCABULARY - 1
    ids = repeated_sequence(n, range(start), seed=2)
    scores = repeated_scores(model, ids, before=(start,))
    assert scores.induction.shape == scores.duplicate.shape == (2, 2)
    assert float(scores.induction[1, 0]) > 0.999
    assert float(scores.duplicate[1, 0]) < 0.001
    # the first layer cannot know the token before: it looks back, and its other head at all alike
    assert float(scores.induction[0, 0]) < 0.001
    uniform = sum(1 / (i + 1) for i in range(1 + n, 1 + 2 * n)) / n
    assert float(scores.induction[0, 1]) == pytest.approx(uniform, abs=1e-5)
    whole = torch.cat([torch.tensor([start]), ids])
    weights = model(whole[None], record=True).records[0].weights[0, 0]
    assert all(float(weights[i, j]) > 0.999 for j, i in pairwise(range(2 * n + 1)))


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_scores_of_a_model_are_those_of_its_weights(name: str):
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


def test_scores_of_a_16_bit_model_are_means_in_float32():
    model = build("gpt2").bfloat16()
    ids = repeated_sequence(8, range(10, 60), seed=1)
    scores = repeated_scores(model, ids)
    first = model(ids[None], record=True).records[0].weights[0].float()
    assert scores.induction.dtype == scores.duplicate.dtype == torch.float32
    assert_close(scores.duplicate[0], first.diagonal(-8, -2, -1).mean(-1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("ids", [[1, 2, 1], [1, 2, 2, 1], [[1, 2], [1, 2]]])
def test_ids_that_do_not_repeat(ids: list[int]):
    with pytest.raises(ValueError, match="not one sequence said twice"):
        repeated_scores(build("gpt2"), torch.tensor(ids))
