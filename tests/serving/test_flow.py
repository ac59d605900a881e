"""Compare the flow and shares in the picture of one pass to the core's analysis."""

import numpy as np
import pytest
import torch

from attention_core.analysis.information_flow import edge_heads, information_flow
from serving import models
from serving.flow import LEAST_SHARE, N_HEADS, compute_flow, next_word_shares, strongest_edge_into
from serving.one_pass import N_DRAWN, one_pass
from tests.helpers.bundled_models import DECODER, ENCODER

pytestmark = pytest.mark.usefixtures("bundled_weights")

TEXT = "Nine grey geese fly over the lake"


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_every_strong_edge_is_drawn_with_its_heads(name: str):
    run, core = one_pass(name, TEXT).run, models.get(name).core
    with torch.inference_mode():
        layers = core(torch.tensor([run.tokens.ids]), record=True).layers
        whole = information_flow(core, layers)
    flow = compute_flow(run)
    drawn = {tuple(edge[:3].astype(int)): edge[3:] for edge in flow.edges}
    strong = (whole.edges >= LEAST_SHARE * 1.001).nonzero().tolist()  # allow for rounding
    assert {tuple(edge) for edge in strong} <= set(drawn)
    assert np.all(flow.edges[:, 3] >= LEAST_SHARE)
    np.testing.assert_allclose(flow.residual, whole.residual, atol=1e-5)
    np.testing.assert_allclose(flow.mlp, whole.mlp, atol=1e-5)
    for layer, query, key in strong[:: max(len(strong) // 20, 1)]:
        share, *heads = drawn[layer, query, key]
        assert share == pytest.approx(float(whole.edges[layer, query, key]), abs=1e-5)
        ends = torch.tensor([query]), torch.tensor([key])
        top = edge_heads(core, layers[layer], layer, *ends)[0].topk(N_HEADS)
        np.testing.assert_allclose(heads[1::2], top.values, atol=1e-5)


def test_disabled_head_carries_nothing_and_has_no_share():
    off = "L3H1"
    passed = one_pass("gpt2-novels", TEXT, (off,))
    edges = compute_flow(passed.run).edges
    heads = edges[edges[:, 0] == 3][:, 4:].reshape(-1, N_HEADS, 2)
    assert not heads[heads[..., 0] == 1][:, 1].any()
    why = next_word_shares(passed)
    assert why is not None
    assert not why.heads[:, 3, 1].any()
    assert why.heads[:, 3, 2].all()


def test_encoder_has_no_next_words_to_explain():
    assert next_word_shares(one_pass(ENCODER, TEXT)) is None


def test_next_word_shares_are_split_by_key():
    why = next_word_shares(one_pass(DECODER, TEXT))
    assert why is not None
    assert len(why.heads) == N_DRAWN
    np.testing.assert_allclose(why.clues.sum(axis=2), why.heads[0], atol=1e-4)
    for word in range(N_DRAWN):
        sizes = np.abs(why.heads[word]).ravel()
        np.testing.assert_allclose(sizes[why.top[word].astype(int)], np.sort(sizes)[::-1][:12])


def test_resting_tokens_are_no_source():
    for name in (DECODER, ENCODER):
        run = one_pass(name, TEXT).run
        result = strongest_edge_into(run, compute_flow(run), None)
        assert result is not None
        assert result.query != result.key
        assert not run.tokens.special[result.query] | run.tokens.special[result.key]
        assert result.key or not run.causal
    alone = one_pass(DECODER, "a").run
    assert strongest_edge_into(alone, compute_flow(alone), None) is None
