"""Information flow compared with a loop over sources, for every kind of model."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.analysis.disabled_parts import DisabledParts, run_without
from attention_core.analysis.information_flow import edge_heads, information_flow, route
from attention_core.model.block import LayerRecord
from tests.helpers.attention_variants import HEADS, LATENT, enlarged_model, tokens
from tests.helpers.tiny_models import TINY

CONFIGS = {
    **TINY,
    **LATENT,
    "grouped": HEADS["llama, GQA of 3"],
    "window": replace(TINY["gpt2"], window=3),
}
LENGTH = 11
CLOSE = {"atol": 1e-4, "rtol": 1e-4}  # differences between float32 sums near 100


def record_layers(model: Transformer) -> tuple[LayerRecord, ...]:
    return model(tokens(model, 1, LENGTH), record=True).layers


def expected_shares(
    model: Transformer, record: LayerRecord, layer: int, query: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute a token's shares: keys (S), heads per key (S, H), and the residual."""
    attention, y = record.attention, record.attention_sum[0, query]
    n_heads, n_kv_heads = attention.weights.shape[1], attention.v.shape[1]
    size = attention.v.shape[-1]

    def importance(source: Tensor) -> float:
        return max(0.0, float(y.abs().sum() - (y - source).abs().sum()))

    keys, heads = torch.zeros(LENGTH), torch.zeros(LENGTH, n_heads)
    for key in range(LENGTH):
        whole = torch.zeros_like(y)
        for head in range(n_heads):
            value = attention.v[0, head // (n_heads // n_kv_heads), key]
            rows = model.out_weight(layer)[head * size : (head + 1) * size]
            passed = attention.weights[0, head, query, key] * (value @ rows)
            heads[key, head] = importance(passed)
            whole += passed
        keys[key] = importance(whole)
    own = importance(record.input[0, query])
    total = float(keys.sum()) + own
    return keys / total, heads, torch.tensor(own / total)


@pytest.mark.parametrize("name", CONFIGS)
def test_flow_matches_an_independent_loop(name: str):
    model = enlarged_model(CONFIGS[name])
    layers = record_layers(model)
    flow = information_flow(model, layers)
    assert_close(flow.edges.sum(-1) + flow.residual, torch.ones_like(flow.residual))
    for layer, query in ((0, 4), (len(layers) - 1, LENGTH - 1)):
        keys, heads, own = expected_shares(model, layers[layer], layer, query)
        assert_close(flow.edges[layer, query], keys, **CLOSE)
        assert_close(flow.residual[layer, query], own, **CLOSE)
        result = edge_heads(
            model, layers[layer], layer, torch.full((LENGTH,), query), torch.arange(LENGTH)
        )
        expected = torch.nan_to_num(heads / heads.sum(dim=1, keepdim=True))
        assert_close(result, expected, **CLOSE)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_feed_forward_share_is_relative_to_the_residual_stream(name: str):
    model = enlarged_model(CONFIGS[name])
    layers = record_layers(model)
    flow = information_flow(model, layers)
    record = layers[1]
    total, network = record.mlp_sum[0, 3], record.mlp_output[0, 3]
    parts = [
        max(0.0, float(total.abs().sum() - (total - part).abs().sum()))
        for part in (network, total - network)
    ]
    assert_close(float(flow.mlp[1, 3]), parts[0] / sum(parts), atol=1e-6, rtol=1e-5)


def test_only_an_encoder_passes_information_to_earlier_tokens():
    for name, later in (("gpt2", False), ("bert", True)):
        model = enlarged_model(CONFIGS[name])
        edges = information_flow(model, record_layers(model)).edges
        assert bool(edges.triu(1).any()) is later


def test_disabled_heads_pass_no_information():
    model = enlarged_model(CONFIGS["grouped"])
    off = frozenset((1, head) for head in range(model.config.n_heads))
    _, layers = run_without(model, tokens(model, 1, LENGTH), DisabledParts(heads=off))
    flow = information_flow(model, layers, off)
    assert not flow.edges[1].any()
    assert flow.edges[0].any()
    first_token = torch.tensor([0])
    assert not edge_heads(model, layers[1], 1, first_token + 5, first_token, off).any()


def test_route_follows_every_edge_above_the_threshold():
    model = enlarged_model(CONFIGS["llama"])
    flow = information_flow(model, record_layers(model))
    result = route(flow, 7, 0.05)
    assert result.nodes[-1].nonzero().flatten().tolist() == [7]
    for layer in range(model.config.n_layers):
        reached = set()
        for query in result.nodes[layer + 1].nonzero().flatten().tolist():
            if flow.residual[layer, query] >= 0.05:
                reached.add(query)
            reached |= {key for key in range(LENGTH) if flow.edges[layer, query, key] >= 0.05}
        assert reached == set(result.nodes[layer].nonzero().flatten().tolist())
        assert not result.edges[layer][~result.nodes[layer + 1]].any()


def test_rejects_invalid_arguments():
    model = enlarged_model(CONFIGS["gpt2"])
    layers = record_layers(model)
    flow = information_flow(model, layers)
    with pytest.raises(ValueError, match=rf"0 to {LENGTH - 1}, got {LENGTH}"):
        route(flow, LENGTH, 0.1)
    with pytest.raises(ValueError, match="got 0"):
        route(flow, 0, 0.0)
    with pytest.raises(ValueError, match="records for a model"):
        information_flow(model, layers[:1])
    cache = model.new_cache(1, LENGTH)
    model(tokens(model, 1, 4), cache=cache)
    continued = model(tokens(model, 1, 3), cache=cache, record=True).layers
    with pytest.raises(ValueError, match="got 3 of 7 tokens"):
        information_flow(model, continued)
    with pytest.raises(ValueError, match="batch of 2"):
        information_flow(model, model(tokens(model, 2, 4), record=True).layers)
