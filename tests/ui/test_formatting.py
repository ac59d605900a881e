"""Test number formatting: a real minus sign instead of a hyphen, and units for sizes."""

import numpy as np
import pytest

from tests.helpers.apptest import number_of
from ui.text.formatting import format_number, percent


def test_negative_number_has_a_minus_sign():
    assert format_number(-0.5, ".2f") == "−0.50"
    assert format_number(0.25, "+.2g") == "+0.25"
    assert format_number(-0.00001, ".1e") == "−1.0 × 10⁻⁵"
    assert format_number(float("-inf"), ".1f") == "−inf"


def test_share_is_a_percentage_with_two_significant_digits():
    shares = [0, 7.6e-6, 0.00001, 0.0036, 0.05, 0.644, 0.996, 1, 1.0000001]
    texts = ["0%", "less than 0.001%", "0.001%", "0.36%", "5%", "64%", "more than 99%"]
    assert [percent(share) for share in shares] == [*texts, "100%", "100%"]
    assert percent(np.float32(0.1)) == "10%"


FORMS = (".1f", ".4f", "+.2f", ".0%", ".1%", ".3g", ".6g", ".1e")
SIZES = [10.0**power * digit for power in range(-320, 12, 2) for digit in (1.0, 2.5, 9.9996)]


@pytest.mark.parametrize("form", FORMS)
def test_number_keeps_its_digits_and_never_becomes_zero(form: str):
    """Parsed back, it equals the number to the displayed digits; only 0 is displayed as 0."""
    for size in (*SIZES, 1.0, 1 - 1e-9, 5e-324):
        for number in (size, -size):
            text = format_number(number, form)
            read = number_of(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            assert (read > 0) == (number > 0), text
            assert (read < 0) == (number < 0), text
            if "×" in text and "f" in form:  # one decimal place
                assert read == pytest.approx(number, rel=0.051), text
            elif "f" in form:
                assert read == float(format(number, form)), text
            elif "%" not in form:
                assert read == pytest.approx(number, rel=0.051), text
            assert "e" not in text
    assert number_of(format_number(0.0, form).removesuffix("%")) == 0
