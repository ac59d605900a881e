"""Gradients, the readout of a recurrent state, and timed implementations."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attention_core.lecture_inputs import JOURNEY
from pages.learn.why_attention.experiment import (
    attention_layer,
    encoder,
    first_token_shares,
    influence,
    last_context,
    last_state,
    recoverable,
    sequence_runs,
    word_vectors,
)
from tests.helpers.lectures import LECTURE_NUMBERS

NUMBERS = LECTURE_NUMBERS
WORDS = ["one", "two", "one", "three", "four", "five", "six"]


def test_same_word_has_the_same_vector():
    x = word_vectors(WORDS, 5, seed=1)
    assert x.shape == (7, 5)
    assert_close(x[0], x[2], atol=0, rtol=0)
    assert not torch.equal(x[0], x[1])
    assert not torch.equal(x, word_vectors(WORDS, 5, seed=2))
    assert_close(word_vectors(WORDS[3:], 5, seed=1), x[3:], atol=0, rtol=0)
    wide = word_vectors([str(i) for i in range(50)], 400, seed=0)
    # The length is about 1: its variance over 400 numbers is about 1/800.
    assert float((wide.norm(dim=1) - 1).abs().max()) < 5 * (1 / 800) ** 0.5


@pytest.mark.parametrize("word", ["\ud800", "\x00"])
def test_any_text_is_a_word(word: str):
    assert word_vectors([word], 3, seed=0).isfinite().all()


def test_encoder_matches_torch_with_a_different_gate():
    torch.manual_seed(4)
    expected = nn.GRU(3, 5, batch_first=True)
    plain, open_gate = encoder(3, 5, 4), encoder(3, 5, 4, hold=2.0)
    for name, parameter in expected.named_parameters():
        assert_close(plain.get_parameter(name), parameter.detach(), atol=0, rtol=0)
    change = open_gate.bias_ih_l0 - plain.bias_ih_l0
    assert_close(change, torch.tensor([0.0] * 5 + [2.0] * 5 + [0.0] * 5))


def test_fully_open_gate_keeps_the_state():
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    gru = encoder(3, 5, 0, hold=50.0)
    assert_close(last_state(gru, x), torch.zeros(2, 5))  # The initial state.


def test_notebook_last_rows():
    block = NUMBERS["002_simplified_self_attention"]
    context, weights = last_context(JOURNEY.embeddings[None], None)
    assert_close(weights[0], torch.tensor(block["weights"][-1]), atol=5e-5, rtol=0)
    assert_close(context[0], torch.tensor(block["context"][-1]), atol=5e-5, rtol=0)
    block = NUMBERS["002_self_attention_v2_seed789"]
    context, weights = last_context(JOURNEY.embeddings[None], attention_layer(3, 2, 789))
    assert_close(weights[0], torch.tensor(block["weights"][-1]), atol=5e-5, rtol=0)
    assert_close(context[0], torch.tensor(block["context"][-1]), atol=5e-5, rtol=0)


@pytest.mark.parametrize("network", ["gru", "attention", "plain"])
def test_influence_is_the_jacobian_norm(network: str):
    x = word_vectors(WORDS, 3, seed=0).double()
    gru, layer = encoder(3, 5, 0).double(), attention_layer(3, 5, 0).double()
    last, size = {
        "gru": (lambda c: last_state(gru, c), 5),
        "attention": (lambda c: last_context(c, layer)[0], 5),
        "plain": (lambda c: last_context(c, None)[0], 3),
    }[network]
    jacobian = torch.autograd.functional.jacobian(lambda one: last(one[None])[0], x)
    assert jacobian.shape == (size, 7, 3)
    assert_close(influence(last, x, size), jacobian.norm(dim=(0, 2)))
    with torch.no_grad():  # A server thread may have gradients disabled.
        assert_close(influence(last, x, size), jacobian.norm(dim=(0, 2)))


def test_gru_forgets_its_first_token_but_attention_does_not():
    x = word_vectors([str(i) for i in range(32)], 8, seed=0).double()
    gru, layer = encoder(8, 16, 0).double(), attention_layer(8, 16, 0).double()
    lengths = [1, 4, 16, 32]
    gru_shares = first_token_shares(lambda c: last_state(gru, c), x, 16, lengths)
    attention_shares = first_token_shares(lambda c: last_context(c, layer)[0], x, 16, lengths)
    assert gru_shares[0] == attention_shares[0] == 1.0
    assert (gru_shares.diff() < 0).all()
    assert gru_shares[-1] < 1e-3
    assert ((attention_shares - 1).abs() < 0.2).all()
    open_gate = encoder(8, 16, 0, hold=4.0).double()
    assert first_token_shares(lambda c: last_state(open_gate, c), x, 16, [32])[0] > 0.5


def test_readout_is_limited_by_the_state_size():
    width, state = 4, 8
    result = recoverable(encoder(width, state, 0, hold=2.0), 10, n_sequences=3000, seed=1)
    assert result.shape == (10,)
    assert result.max() <= 1.0
    assert 0 < width * float(result.clamp(min=0).sum()) <= state


def test_timed_implementations_agree():
    runs = sequence_runs(9, 6, seed=0)
    loop, gru, attention = (run() for run in runs.values())
    assert loop.shape == gru.shape == attention.shape == (1, 9, 6)
    assert_close(loop, gru, atol=1e-6, rtol=1e-5)
    assert not any(result.requires_grad for result in (loop, gru, attention))
