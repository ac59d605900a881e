"""Numbers in sentences have a minus sign, which a hyphen is not; sizes say what they count."""

from serving.number_text import sizes, written


def test_a_negative_number_has_a_minus_sign():
    assert written(-0.5, ".2f") == "−0.50"
    assert written(0.25, "+.2g") == "+0.25"
    assert written(-0.00001, ".1e") == "−1.0e−05"
    assert written(float("-inf"), ".1f") == "−inf"


def test_sizes_are_counts_and_not_places():
    axes = ("batch", "head", "query", "key")
    assert sizes(axes, (2, 1, 6, 1)) == "batch of 2 × 1 head × 6 queries × 1 key"
    assert sizes(("token", "width"), (1, 2048)) == "1 token × width of 2,048"
