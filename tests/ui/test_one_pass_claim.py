"""Test the title of the picture of one pass: its numbers and words match the tensors."""

import numpy as np
import pytest

from serving.flow import compute_flow, next_word_shares
from serving.one_pass import one_pass
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_GPT2
from ui.canvas.one_pass.claim import claim, clue, clue_edge, first_head, selected_token
from ui.canvas.one_pass.stored import MARY, ROME

pytestmark = pytest.mark.usefixtures("bundled_weights")


def claim_for(model: str, text: str) -> str:
    passed = one_pass(model, text)
    return claim(passed, compute_flow(passed.run), next_word_shares(passed))


def test_claim_for_copied_word():
    claimed = claim_for(DECODER, MARY)
    assert "Mary" in claimed
    assert "92%" in claimed
    assert "Layer 23" in claimed


@pytest.mark.parametrize("text", [ROME, "The opposite of hot is", "Monday, Tuesday, Wednesday,"])
def test_clue_is_the_word_with_the_largest_share_and_its_curve_is_drawn(text: str):
    passed = one_pass(DECODER, text)
    why, flow = next_word_shares(passed), compute_flow(passed.run)
    assert why is not None
    key = clue(passed, why)
    assert key is not None
    reading = clue_edge(passed, flow, why, key)
    assert reading is not None
    by_key = why.clues.sum(axis=(0, 1))
    assert by_key[key] > 0
    last = len(passed.run.tokens) - 1
    edge = (reading.layer, last, key)
    assert (flow.edges[:, :3] == edge).all(axis=1).any()
    assert f"layer {reading.layer}" in claim_for(DECODER, text).lower()
    assert first_head(passed, flow, why) == reading


def test_encoder_claim_names_what_its_pronoun_takes():
    text = "The animal didn't cross the street because it was too tired"
    passed = one_pass(ENCODER, text)
    flow, token = compute_flow(passed.run), selected_token(passed)
    assert passed.run.tokens.labels[token] == "it"
    into = flow.edges[(flow.edges[:, 1] == token) & (flow.edges[:, 2] != token)]
    special = np.array(passed.run.tokens.special)[into[:, 2].astype(int)]
    largest = into[~special][into[~special][:, 3].argmax()]
    assert f"“{passed.run.tokens.labels[int(largest[2])]}”" in claim_for(ENCODER, text)


@pytest.mark.parametrize("model", [DECODER, ENCODER, FIRST_GPT2])
@pytest.mark.parametrize("text", ["a", "!?", "  ", "🙂🙂", "<b>x</b>"])
def test_every_text_has_a_title(model: str, text: str):
    if text.strip() or model != ENCODER:
        assert claim_for(model, text)
