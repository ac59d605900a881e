"""Compare the stored picture of a pass to the model."""

import numpy as np
import pytest

from serving.one_pass import one_pass
from tests.helpers.bundled_models import DECODER, ENCODER
from ui.canvas.one_pass import stored as stored_passes
from ui.canvas.one_pass.picture import picture

pytestmark = pytest.mark.usefixtures("bundled_weights")


@pytest.mark.parametrize("text", stored_passes.STORED)
def test_stored_picture_matches_the_model(text: str):
    stored = stored_passes.load_stored_picture(DECODER, text)
    assert stored is not None
    current = picture(one_pass(DECODER, text))
    largest = stored.header.pop("largest"), current.header.pop("largest")
    np.testing.assert_allclose(*largest, rtol=1e-4)
    assert stored.header == current.header
    assert stored.numbers.keys() == current.numbers.keys()
    for name, numbers in current.numbers.items():
        # another machine may add in a different order, and numbers go up to 1e4
        np.testing.assert_allclose(stored.numbers[name], numbers, rtol=1e-3, atol=1e-3)


def test_encoder_has_no_next_token():
    current = picture(one_pass(ENCODER, "Two cats"))
    assert current.header["next"] is None
    assert "next_logits" not in current.numbers
