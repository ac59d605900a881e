"""The stored picture of a pass against the model, and what a picture holds."""

import numpy as np
import pytest

from serving.one_pass import one_pass
from tests.helpers.bundled_models import DECODER, ENCODER
from ui.canvas.one_pass import stored as stored_passes
from ui.canvas.one_pass.picture import picture

pytestmark = pytest.mark.usefixtures("bundled_weights")


@pytest.mark.parametrize("text", stored_passes.STORED)
def test_a_stored_picture_is_that_of_the_model(text: str):
    stored = stored_passes.load_stored_picture(DECODER, text)
    assert stored is not None
    made = picture(one_pass(DECODER, text))
    largest = stored.header.pop("largest"), made.header.pop("largest")
    np.testing.assert_allclose(*largest, rtol=1e-4)
    assert stored.header == made.header
    assert stored.numbers.keys() == made.numbers.keys()
    for name, numbers in made.numbers.items():
        # another machine adds up in another order: of numbers that reach 1e4
        np.testing.assert_allclose(stored.numbers[name], numbers, rtol=1e-3, atol=1e-3)


def test_an_encoder_says_no_next_token():
    made = picture(one_pass(ENCODER, "Two cats"))
    assert made.header["next"] is None
    assert "next_logits" not in made.numbers
