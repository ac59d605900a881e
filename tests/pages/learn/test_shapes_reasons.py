"""What the Shapes page says of each step, from the sizes of the tensors it stands beside."""

import pytest

from pages.learn.shapes import example, real_layer
from pages.learn.shapes.reasons import reason
from pages.learn.shapes.walk import LAST, ShapeWalk
from tests.helpers.bundled_models import DECODER, ENCODER


def of_example(*, causal: bool, dropout: float) -> ShapeWalk:
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


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_sizes_are_those_of_the_example(causal: bool, dropout: float):
    walk = of_example(causal=causal, dropout=dropout)
    reasons = [reason(walk, number) for number in range(1, LAST + 1)]
    assert "a row of 7 numbers" in reasons[0]
    assert "d_out is 10: 2 heads with 5 columns each" in reasons[1]
    assert "7 rows and 10 columns" in reasons[2]
    assert "Three wide products" in reasons[3]
    assert "heads on their own would make 6" in reasons[3]
    assert "Rotary" not in reasons[5]
    assert ("-inf" in reasons[7]) == causal
    assert "by √5" in reasons[7]
    assert ("each 0 with probability 0.3" in reasons[7]) == (dropout > 0)
    assert "share" not in "".join(reasons)


@pytest.mark.parametrize(("name", "shares"), [(DECODER, True), (ENCODER, False)])
def test_a_layer_has_its_own_reasons(name: str, shares: bool):
    walk = real_layer.walk(name, "The cat sleeps", 2, 1)
    reasons = [reason(walk, number) for number in range(1, LAST + 1)]
    for number in (2, 3, 7, 9):
        assert ("only 3 key/value heads: 3 query heads share each" in reasons[number - 1]) == shares
    assert ("Rotary positions" in reasons[5]) == shares
    assert ("-inf" in reasons[7]) == shares
    assert "One product makes all three" in reasons[3]
