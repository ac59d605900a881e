"""Test generated text: tokens, passes and their probabilities, with and without a cache."""

import pytest
import torch

from attention_core import Sampling, generate
from attention_core.costs.formulas import forward_flops
from serving import models
from serving.continuation import N_CHOICES, continue_text
from serving.limits import MAX_ONE_PASS_TOKENS, OverLimit
from serving.one_pass import extended_pass, one_pass
from tests.helpers.bundled_models import DECODER, ENCODER

pytestmark = pytest.mark.usefixtures("bundled_weights")

TEXT = "Nine grey geese fly over the lake"


def test_passes_match_the_model():
    continuation = continue_text(DECODER, TEXT, 3, 0.7, 20)
    model = models.get(DECODER)
    prompt = model.tokenizer.encode(TEXT).ids
    chosen = generate(model.core, prompt, max_new_tokens=4, sampling=Sampling(0.7, 20))
    assert continuation.ids == tuple(chosen[:3])
    assert [step.token_id for step in continuation.cached] == chosen
    assert [step.token_id for step in continuation.uncached] == chosen
    n = len(prompt)
    assert continuation.n_prompt == n
    assert [step.n_new for step in continuation.cached] == [n, 1, 1, 1]
    assert [step.n_new for step in continuation.uncached] == [n, n + 1, n + 2, n + 3]
    assert [step.flops for step in continuation.uncached] == [
        forward_flops(model.core.config, rows, rows) for rows in range(n, n + 4)
    ]
    assert all(step.seconds > 0 for step in continuation.cached + continuation.uncached)


def test_each_pass_matches_full_pass():
    continuation = continue_text(DECODER, TEXT, 3, 1.0, None)
    model = models.get(DECODER)
    with torch.inference_mode():
        ids = torch.tensor([[*model.tokenizer.encode(TEXT).ids, *continuation.ids]])
        shares = model.core(ids).logits[0].softmax(dim=-1)
    for number, choices in enumerate(continuation.choices):
        expected = shares[continuation.n_prompt - 1 + number].topk(N_CHOICES).values
        # a cache changes the order of sums
        torch.testing.assert_close(
            torch.tensor(choices.probabilities), expected, atol=1e-5, rtol=1e-4
        )
    grown = extended_pass(DECODER, TEXT, continuation.ids)
    assert len(grown.run.tokens) == ids.shape[1]
    assert grown.run.tokens.labels[-1].startswith(continuation.choices[2].selected)
    # existing values don't change when the text grows
    before = one_pass(DECODER, TEXT).run.tensors.states
    after = grown.run.tensors.states[:, : continuation.n_prompt]
    torch.testing.assert_close(after, before, atol=1e-3, rtol=1e-4)  # lengths go up to 1e4


def test_continuation_is_limited_by_the_picture():
    text = "a " * (MAX_ONE_PASS_TOKENS - 3)
    n_prompt = len(models.get(DECODER).tokenizer.encode(text).ids)
    continuation = continue_text(DECODER, text, 12, 1.0, 1)
    assert n_prompt + len(continuation.ids) <= MAX_ONE_PASS_TOKENS
    assert len(continuation.cached) == len(continuation.ids) + 1


def test_invalid_continuations_are_rejected():
    with pytest.raises(ValueError, match="text"):
        continue_text(ENCODER, TEXT, 3, 1.0, None)
    with pytest.raises(OverLimit, match=str(MAX_ONE_PASS_TOKENS)):
        continue_text(DECODER, "word " * 80, 3, 1.0, None)
