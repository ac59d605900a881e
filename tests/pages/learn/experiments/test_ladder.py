"""Every rung of the ladder contains the one below."""

import pytest
import torch
from torch.testing import assert_close

from attention_core import causal_mask
from attention_core.lecture_inputs import BOY, JOURNEY
from attention_core.seeding import seeded
from pages.learn.ladder.experiment.ladder import (
    CAUSAL,
    DROPOUT,
    RUNGS,
    SIMPLIFIED,
    SPLITS,
    V1,
    WRAPPER,
    RungSettings,
    lecture_seed,
    loop_attention,
    products,
    projections,
    run_rung,
    score_matrix,
)

# All sizes differ.
T, D_IN, D_OUT, HEADS = 5, 7, 6, 3
SETTINGS = RungSettings(d_out=D_OUT, n_heads=HEADS, dropout=0.3, seed=17, draw=4)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(T, D_IN, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize("causal", [True, False])
def test_every_rung_contains_the_one_below(x, name, causal):
    settings = RungSettings(d_out=D_OUT, n_heads=HEADS, dropout=0.3, causal=causal, seed=17, draw=4)
    rung = run_rung(name, x, settings)
    # These are the same products in a different layout, so 7-term sums differ only by rounding.
    assert rung.difference < 1e-5
    assert rung.output.shape == {SIMPLIFIED: (T, D_IN), WRAPPER: (T, HEADS * D_OUT)}.get(
        name, (T, D_OUT)
    )


def test_check_can_fail(x):
    """Make sure that a mask changes the output, so that the comparison above can fail."""
    masked, open_ = (
        run_rung(SPLITS, x, RungSettings(d_out=6, n_heads=3, seed=1, causal=causal)).output
        for causal in (True, False)
    )
    assert float((masked - open_).abs().max()) > 1e-3


def test_plain_loops_match_the_definition(x):
    weights = torch.softmax(x.double() @ x.double().T, dim=-1)
    assert_close(loop_attention(x), (weights @ x.double()).float(), atol=1e-6, rtol=0)
    assert not torch.allclose(loop_attention(x), x, atol=1e-2)


@pytest.mark.parametrize("name", RUNGS)
def test_scores_equal_a_bilinear_form_of_two_tokens(x, name):
    rung = run_rung(name, x, SETTINGS)
    for head in range(rung.n_heads):
        q, k = rung.head(rung.record.q, head), rung.head(rung.record.k, head)
        scores = rung.head(rung.record.scores, head)
        assert_close(products(q[1], k[3]).sum(), scores[1, 3], atol=1e-5, rtol=0)
        between = score_matrix(*projections(rung, head))
        assert between.shape == (D_IN, D_IN)
        assert_close(x @ between @ x.T, scores, atol=1e-4, rtol=0)
        symmetric = torch.allclose(scores, scores.T, atol=1e-6)
        assert symmetric == (name == SIMPLIFIED) == torch.allclose(between, between.T)


def test_dropout_rung_matches_torch_dropout(x):
    rung = run_rung(DROPOUT, x, SETTINGS)
    with seeded(SETTINGS.draw):
        expected = torch.nn.functional.dropout(rung.record.attention, SETTINGS.dropout)
    assert torch.equal(rung.record.weights, expected)
    assert (rung.record.weights == 0).sum() > (rung.record.attention == 0).sum()
    assert_close(rung.record.attention, run_rung(CAUSAL, x, SETTINGS).record.attention)


def test_causal_rung_sees_no_future(x):
    rung = run_rung(CAUSAL, x, SETTINGS)
    assert torch.equal(rung.record.weights > 0, causal_mask(T, T))
    changed = x.clone()
    changed[-1] += 1
    assert_close(run_rung(CAUSAL, changed, SETTINGS).output[:-1], rung.output[:-1])


def test_global_rng_is_unchanged(x):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    for name in RUNGS:
        run_rung(name, x, SETTINGS)
    assert torch.equal(torch.rand(3), expected)


def test_lecture_seeds():
    six, nine = JOURNEY.embeddings, BOY.embeddings
    assert [lecture_seed(name, six) for name in RUNGS[1:]] == [123, 789, 789, 789, 123, 123]
    assert {lecture_seed(name, nine) for name in RUNGS[1:]} == {123}


def test_rejects_mismatched_shapes(x):
    with pytest.raises(ValueError, match=r"\(0, 7\)"):
        run_rung(V1, x[:0])
    with pytest.raises(ValueError, match=r"\(5\).*\(3\)"):
        run_rung(SPLITS, x, RungSettings(d_out=5, n_heads=3))


# ---- scores to weights
