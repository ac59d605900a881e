"""The date translator: its stored weights on unseen dates, and valid input."""

import json
import struct
from datetime import date

import pytest
import torch
from torch.testing import assert_close

from pages.learn.two_networks.experiment.dates import (
    FORMS,
    START,
    batch,
    decode,
    encode,
    format_date,
    is_held_out,
    pairs,
    parse_date,
)
from pages.learn.two_networks.experiment.model import WEIGHTS, trained_translator
from training.translator import accuracy, train


def test_stored_weights_translate_unseen_dates():
    assert accuracy(trained_translator(), 200, seed=5) > 0.98


def test_stored_file_is_small_safetensors():
    content = WEIGHTS.read_bytes()
    assert len(content) <= 2**20
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    assert {entry["dtype"] for entry in header.values()} == {"F32"}


def test_padding_and_later_symbols_have_no_effect():
    model = trained_translator()
    texts = ["3rd of may 1998", "the 21st of september 2004"]
    both, _ = model.translate(batch(texts))
    assert [decode(row) for row in both.tolist()] == ["1998-05-03", "2004-09-21"]
    single_output, result = model.translate(batch(texts[:1]))
    assert_close(single_output[0], both[0])
    decoder_input = torch.cat((torch.tensor([[START]]), single_output[:, :4]), dim=1)
    assert_close(
        model(batch(texts[:1]), decoder_input).logits, result.logits[:, :5], atol=1e-5, rtol=1e-5
    )


def test_training_excludes_held_out_dates():
    assert not any(is_held_out(date.fromisoformat(day)) for _, day in pairs(300, 0, held_out=False))
    assert all(is_held_out(date.fromisoformat(day)) for _, day in pairs(300, 0, held_out=True))


def test_training_is_reproducible():
    first, second = train(2).state_dict(), train(2).state_dict()
    assert_close(first, second, atol=0, rtol=0)


@pytest.mark.parametrize(
    ("day", "ordinal"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(day, ordinal):
    assert format_date(date(1998, 5, day), FORMS[0]) == f"{ordinal} of may 1998"


@pytest.mark.parametrize("text", ["", "x" * 33, "3 мая 1998"])
def test_rejects_unreadable_text(text):
    with pytest.raises(ValueError, match="symbols|letters"):
        encode(text)


def test_parses_every_date_format_and_nothing_else():
    day = date(1955, 7, 12)
    for form in FORMS:
        assert parse_date(format_date(day, form).upper()) == day
    for text in ("12 july", "31 june 1955", "12 july 1655", "12 july july 1955", "12  july 1955"):
        assert parse_date(text) is None


def test_single_vector_has_one_key_and_ignores_padding():
    model = trained_translator()
    texts = ["3rd of may 1998", "the 21st of september 2004"]
    both, result = model.translate(batch(texts), one_vector=True)
    assert result.cross[0].weights.shape == (2, 4, 10, 1)
    single_output, one = model.translate(batch(texts[:1]), one_vector=True)
    assert_close(single_output[0], both[0])
    assert_close(one.logits[0], result.logits[0], atol=1e-5, rtol=1e-5)
