"""Numbers in sentences have a minus sign, which a hyphen is not."""

from serving.number_text import written


def test_a_negative_number_has_a_minus_sign():
    assert written(-0.5, ".2f") == "−0.50"
    assert written(0.25, "+.2g") == "+0.25"
    assert written(-0.00001, ".1e") == "−1.0e−05"
    assert written(float("-inf"), ".1f") == "−inf"
