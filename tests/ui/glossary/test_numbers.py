"""The stored numbers of the pictures, against a new computation and against the lectures."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.lectures import LECTURE_NUMBERS
from ui.frame.glossary import numbers


def flat(value: Any) -> list[Any]:
    """All numbers and texts of nested lists, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [inner for part in value for inner in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.usefixtures("bundled_weights")
def test_the_stored_numbers_are_those_of_the_core():
    stored, computed = numbers.stored(), numbers.computed()
    assert stored.keys() == computed.keys()
    for name, value in computed.items():
        one, other = flat(stored[name]), flat(value)
        kinds = [isinstance(item, float) for item in other]
        assert [item for item in one if not isinstance(item, float)] == [
            item for item in other if not isinstance(item, float)
        ], name
        np.testing.assert_allclose(
            [item for item in one if isinstance(item, float)],
            [item for item, kind in zip(other, kinds, strict=True) if kind],
            rtol=1e-3,
            atol=1e-5,
            err_msg=name,
        )


def test_the_pictures_of_attention_show_the_numbers_of_the_lecture():
    lecture, stored = LECTURE_NUMBERS["002_simplified_self_attention"], numbers.stored()
    for name, picture in (("scores", "scores"), ("weights", "weights")):
        np.testing.assert_allclose(stored[picture], lecture[name][1], atol=1e-4)
    np.testing.assert_allclose(stored["weight_map"], lecture["weights"], atol=1e-4)
    np.testing.assert_allclose(stored["context"], lecture["context"], atol=1e-4)
    second = LECTURE_NUMBERS["002_self_attention_v2_seed789"]
    np.testing.assert_allclose(np.transpose(stored["W_query"]), second["W_query"], atol=1e-4)
