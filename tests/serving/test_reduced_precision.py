"""Compare the reported cost of reduced precision to an independent computation."""

import math

import pytest
import torch

from serving import models, reduced_precision
from tests.helpers.bundled_models import FIRST_GPT2


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer all precisions; without a GPU they run on the CPU."""
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: True)


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize(
    ("weights", "share", "bytes_a_number"), [("int8", 0.85, 1.1), ("bfloat16", 0.95, 2)]
)
def test_cost_matches_the_perplexity_of_both_models(
    weights: reduced_precision.Weights, share: float, bytes_a_number: float
):
    """Uses the small model, because the larger one takes ten times as long."""
    price, model = reduced_precision.precision_cost(FIRST_GPT2, weights), models.get(FIRST_GPT2)
    ids = torch.tensor([model.tokenizer.encode(reduced_precision.TEXT).ids], device=model.device)
    core = reduced_precision.load_core(FIRST_GPT2, weights)
    with torch.inference_mode():
        plain = model.core(ids).logits[0]
        cache = core.new_cache(1, ids.shape[1])
        steps = [core(column, cache=cache).logits[0, 0].float() for column in ids.split(1, dim=1)]
    stepped = torch.stack(steps)
    assert price.n_tokens == ids.shape[1] - 1 > 100

    def perplexity(logits: torch.Tensor) -> float:
        surprise = -logits[:-1].log_softmax(-1).gather(1, ids[0, 1:, None])
        return math.exp(float(surprise.mean()))

    assert price.perplexity == pytest.approx(perplexity(plain), rel=1e-4)
    # sums over eight tokens at once run in a different order, so rounding differs
    assert price.perplexity_rounded == pytest.approx(perplexity(stepped), rel=2e-2)
    equal = int((plain.argmax(-1) == stepped.argmax(-1))[:-1].sum())
    assert abs(price.n_equal - equal) <= 0.05 * price.n_tokens
    assert price.n_equal > share * price.n_tokens
    assert price.perplexity_rounded < 1.1 * price.perplexity
    assert 0 < price.largest_difference < 5
    assert price.n_bytes_rounded <= bytes_a_number / 4 * price.n_bytes


def test_16_bits_are_for_a_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reduced_precision, "has_gpu", lambda: False)
    assert reduced_precision.weight_formats() == ["float32", "int8"]
    with pytest.raises(ValueError, match="bfloat16"):
        reduced_precision.load_core(FIRST_GPT2, "bfloat16")
