"""Explanations of each step on the Shapes page, based on the tensor sizes."""

import re

import pytest

from pages.learn.shapes import example, real_layer
from pages.learn.shapes.reasons import reason
from pages.learn.shapes.walk import LAST, ShapeWalk
from tests.helpers.bundled_models import DECODER, ENCODER


def example_walk(*, causal: bool, dropout: float) -> ShapeWalk:
    return example.walk(
        ["a b c d"],
        d_in=7,
        d_out=10,
        n_heads=2,
        context_length=9,
        causal=causal,
        dropout=dropout,
        seed=1,
        dropout_seed=2,
    )


@pytest.mark.parametrize(("causal", "dropout"), [(True, 0.0), (False, 0.3)])
def test_reasons_use_the_example_sizes(causal: bool, dropout: float):
    walk = example_walk(causal=causal, dropout=dropout)
    reasons = [reason(walk, number) for number in range(1, LAST + 1)]
    assert "7" in reasons[0]
    assert "6" in reasons[3]
    assert re.findall(r"\d+", reasons[1])[:3] == ["10", "2", "5"]
    assert "7 rows and 10 columns" in reasons[2]
    assert "Rotary" not in reasons[5]
    assert ("-inf" in reasons[7]) == causal
    assert "√5" in reasons[7]
    assert ("0.3" in reasons[7]) == (dropout > 0)


@pytest.mark.parametrize(("name", "shares"), [(DECODER, True), (ENCODER, False)])
def test_reasons_depend_on_the_layer(name: str, shares: bool):
    walk = real_layer.walk(name, "The cat sleeps", 2, 1)
    reasons = [reason(walk, number) for number in range(1, LAST + 1)]
    for number in (2, 3, 7, 9):
        assert ("3 query heads share" in reasons[number - 1]) == shares
    assert ("Rotary" in reasons[5]) == shares
    assert ("-inf" in reasons[7]) == shares
