"""Numbers in sentences have a minus sign, which a hyphen is not; sizes say what they count."""

from serving.number_text import difference, either, sizes, written


def test_a_negative_number_has_a_minus_sign():
    assert written(-0.5, ".2f") == "−0.50"
    assert written(0.25, "+.2g") == "+0.25"
    assert written(-0.00001, ".1e") == "−1.0e−05"
    assert written(float("-inf"), ".1f") == "−inf"


def test_sizes_are_counts_and_not_places():
    axes = ("batch", "head", "query", "key")
    assert sizes(axes, (2, 1, 6, 1)) == "batch of 2 × 1 head × 6 queries × 1 key"
    assert sizes(("token", "width"), (1, 2048)) == "1 token × width of 2,048"


def test_which_numbers_would_do():
    assert either([1, 2, 6], "head") == "1, 2 or 6 heads"
    assert either([2, 4]) == "2 or 4"
    assert either([1], "head") == "1 head"
    assert either([16]) == "16"


def test_a_difference_is_nothing_or_has_its_power_of_ten():
    assert difference(0.0) == "exactly 0"
    assert difference(1.23e-7) == "1.2e-07"
