"""The residual stream adds up, and the logit lens ends at the model's logits."""

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.analysis.residual_stream import (
    last_row_logits,
    lens_predictions,
    logit_lens,
)
from tests.helpers.tiny_models import build

IDS = torch.tensor([1, 4, 2, 8, 5, 7, 3])
# the sums are large and computed in a different order
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def test_logit_lens_ends_at_the_final_logits(decoder: Transformer):
    output = decoder(IDS[None], record=True)
    logits = logit_lens(decoder, torch.cat(output.hidden_states))
    assert logits.shape == (decoder.config.n_layers + 1, 7, decoder.config.vocab_size)
    assert_close(logits[-1], output.logits[0], **CLOSE)
    assert (logits[0] - logits[-1]).abs().max() > 0.1


def test_last_row_logits(decoder: Transformer):
    output = decoder(IDS[None])
    last_row = last_row_logits(decoder, output.hidden[0])
    assert_close(last_row, output.logits[0, -1], **CLOSE)
    assert_close(last_row, decoder(IDS[None], last_only=True).logits[0, 0], atol=0, rtol=0)


def test_model_without_an_output_matrix_has_no_logit_lens():
    model = build("bert")
    output = model(IDS[None], record=True)
    with pytest.raises(ValueError, match="output matrix"):
        logit_lens(model, torch.cat(output.hidden_states))


def test_lens_reading_of_known_logits():
    # token 2 is on top after one layer, drops, and is on top again after three
    logits = torch.tensor([[3.0, 2.0, 1.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [0.0, 1.0, 5.0]])
    lens = lens_predictions(logits, 2)
    assert lens.final == 2
    assert lens.ids.tolist() == [[0, 1], [2, 1], [0, 2], [2, 1]]
    assert lens.final_rank.tolist() == [2, 0, 1, 0]
    assert lens.first_layer == 1
    assert lens.stable_from == 3
    assert_close(lens.final_probability, logits.softmax(-1)[:, 2])
    assert_close(lens.probabilities[:, 0], logits.softmax(-1).amax(-1))
    assert lens_predictions(logits[3:], 1).stable_from == 0
