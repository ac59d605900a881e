"""Check attention sink measures with explicit loops and with a model built to have a sink."""

from statistics import median

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from pages.compare.generated_tokens.experiment.attention_sink import (
    measure_sink,
    received_weight,
    run_variants,
    uniform_weight,
    variants,
)
from tests.helpers.tiny_models import build

IDS = [3, 1, 4, 1, 5, 9, 2]
OTHERS = [("six", 6), ("seven", 7)]


def test_measures_match_explicit_loops(decoder: Transformer):
    result = measure_sink(decoder, IDS)
    output = decoder(torch.tensor([IDS]), record=True)
    config = decoder.config
    n = len(IDS)
    assert result.weight.shape == (config.n_layers, config.n_heads)
    assert result.key_ratio.shape == (config.n_layers, config.kv_heads)
    assert result.state_ratio.shape == (config.n_layers + 1,)
    for layer, record in enumerate(output.records):
        by_head = decoder.out_weight(layer).view(config.n_heads, config.d_head, config.d_model)
        for head in range(config.n_heads):
            rows = record.weights[0, head]
            assert float(result.weight[layer, head]) == pytest.approx(
                sum(float(rows[i, 0]) for i in range(1, n)) / (n - 1), abs=1e-6
            )
            written = [
                float((record.v[0, head // config.group_size, j] @ by_head[head]).norm())
                for j in range(n)
            ]
            assert float(result.value_ratio[layer, head]) == pytest.approx(
                written[0] / median(written[1:]), rel=1e-4
            )
            shares = [
                float(rows[i, 0])
                * written[0]
                / sum(float(rows[i, j]) * written[j] for j in range(n))
                for i in range(1, n)
            ]
            assert float(result.share[layer, head]) == pytest.approx(
                sum(shares) / len(shares), rel=1e-4
            )
        for head in range(config.kv_heads):
            lengths = [float(key.norm()) for key in record.k[0, head]]
            assert float(result.key_ratio[layer, head]) == pytest.approx(
                lengths[0] / median(lengths[1:]), rel=1e-4
            )
    for place, state in enumerate(output.hidden_states):
        lengths = [float(token.norm()) for token in state[0]]
        assert float(result.state_ratio[place]) == pytest.approx(
            lengths[0] / median(lengths[1:]), rel=1e-4
        )
        squares = state[0, 0].square()
        assert int(result.coordinate[place]) == int(squares.argmax())
        assert float(result.concentration[place]) == pytest.approx(
            float(squares.max() / squares.sum()), rel=1e-5
        )


def test_received_attention_excludes_self_attention():
    weights = torch.rand(2, 3, 5, 5).tril()
    by_hand = [
        sum(float(weights[a, b, i, j]) for a in range(2) for b in range(3) for i in range(j + 1, 5))
        / (6 * (4 - j))
        for j in range(4)
    ]
    assert_close(received_weight(weights), torch.tensor(by_hand))
    assert_close(received_weight(weights[0, 0]), received_weight(weights[:1, :1]))


def test_uniform_attention_is_the_baseline():
    even = torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]
    assert uniform_weight(4) == pytest.approx(float(received_weight(even)[0]))
    assert uniform_weight(2) == 0.5


def test_variants_only_change_the_first_token():
    results = {variant.name: variant for variant in variants(IDS, OTHERS)}
    assert results["original text"].token_ids == tuple(IDS)
    assert results["first token replaced by seven"].token_ids == (7, *IDS[1:])
    assert results["six added in front"].token_ids == (6, *IDS)
    assert results["first token dropped"].token_ids == tuple(IDS[1:])
    hidden = results["first token hidden from all queries"]
    assert (hidden.token_ids, hidden.hidden) == (tuple(IDS), True)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_masking_equals_dropping_the_first_token_only_with_relative_positions(name: str):
    model = build(name)
    outcomes = {o.variant.name: o for o in run_variants(model, variants(IDS, OTHERS))}
    hidden, dropped = (
        outcomes[f"first token {what}"] for what in ("hidden from all queries", "dropped")
    )
    assert float(hidden.received[0]) == 0
    same = torch.allclose(hidden.received[1:], dropped.received, atol=1e-5)
    assert same == (name == "llama")
    if same:
        assert hidden.next_id == dropped.next_id
    original = outcomes["original text"]
    output = model(torch.tensor([IDS]), record=True)
    probabilities = output.logits[0, -1].softmax(-1)
    assert original.next_id == int(probabilities.argmax())
    assert original.next_probability == pytest.approx(float(probabilities.max()), rel=1e-4)
    assert_close(original.received, received_weight(torch.cat([r.weights for r in output.records])))
    assert original.received[original.sink] >= original.received[original.second] >= 0
    assert original.sink != original.second


def test_positional_sink_does_not_depend_on_the_token():
    """Make keys depend only on position, so that every query attends to position 0."""
    model = build("gpt2")
    width = model.config.d_model
    assert model.positions is not None
    assert model.unembedding is not None
    model.unembedding[0] = 0  # The first coordinate of the residual stream encodes the position.
    model.positions[:, 0] = 0
    model.positions[0, 0] = 200
    for block in model.blocks:
        query, key = block.attention.qkv.matrix[:, :width], block.attention.qkv.matrix[:, width:]
        query.zero_()
        block.attention.qkv.bias[:width] = 3
        key[:, :width].zero_()
        key[0, :width] = 3  # The first coordinate is positive for position 0 in every layer.
    outcomes = run_variants(model, variants(IDS, OTHERS))
    for outcome in outcomes:
        if not outcome.variant.hidden:
            assert outcome.sink == 0
            assert float(outcome.received[0]) > 0.9
    assert measure_sink(model, IDS).weight.min() > 0.9


def test_single_token_and_encoder_have_no_sink():
    with pytest.raises(ValueError, match="got 1"):
        measure_sink(build("gpt2"), [3])
    with pytest.raises(ValueError, match="causal"):
        measure_sink(build("bert"), IDS)
