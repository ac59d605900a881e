"""Models in 8 bits: what is said of their price is what an independent reading finds."""

import math

import pytest
import torch

from serving import models, quantized
from tests.helpers.bundled_models import ENCODER, FIRST_GPT2


def test_the_price_is_what_both_models_say_of_the_text():
    """Of the small model: the larger one needs ten times as long for the same sums."""
    price, model = quantized.price(FIRST_GPT2), models.get(FIRST_GPT2)
    ids = torch.tensor([model.tokenizer.encode(quantized.TEXT).ids])
    with torch.inference_mode():
        plain = model.core(ids).logits[0]
        cache = quantized.int8(FIRST_GPT2).new_cache(1, ids.shape[1])
        steps = [quantized.int8(FIRST_GPT2)(ids[:, :1], cache=cache).logits[0, 0]]
        for place in range(1, ids.shape[1]):
            column = ids[:, place : place + 1]
            steps.append(quantized.int8(FIRST_GPT2)(column, cache=cache).logits[0, 0])
    rounded = torch.stack(steps)
    assert price.n_tokens == ids.shape[1] - 1 > 100

    def perplexity(logits: torch.Tensor) -> float:
        surprise = -logits[:-1].log_softmax(-1).gather(1, ids[0, 1:, None])
        return math.exp(float(surprise.mean()))

    assert price.perplexity == pytest.approx(perplexity(plain), rel=1e-4)
    # a pass of eight tokens sums in another order than one of one token: bfloat16 rounds either way
    assert price.perplexity_int8 == pytest.approx(perplexity(rounded), rel=2e-2)
    equal = int((plain.argmax(-1) == rounded.argmax(-1))[:-1].sum())
    assert abs(price.n_equal - equal) <= 0.05 * price.n_tokens
    assert price.n_equal > 0.85 * price.n_tokens
    assert price.perplexity_int8 < 1.1 * price.perplexity
    assert 0 < price.largest_difference < 5
    assert price.n_bytes_int8 < 0.3 * price.n_bytes


def test_the_model_itself_stays_as_it_was():
    assert quantized.core(FIRST_GPT2, "float32") is models.get(FIRST_GPT2).core
    assert quantized.core(FIRST_GPT2, "int8") is quantized.int8(FIRST_GPT2)


def test_an_encoder_has_no_price():
    with pytest.raises(ValueError, match="writes no text"):
        quantized.price(ENCODER)
