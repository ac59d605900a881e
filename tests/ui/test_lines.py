"""Heads as lines, and the scripts that drawn components share: what reaches the browser."""

import numpy as np
import pytest

from tests.helpers.drawn_tensors import unpacked
from ui.canvas.lines import MAX_HEADS, MAX_TOKENS, pack


def unpack(data: bytes) -> tuple[dict, np.ndarray]:
    header, body = unpacked(data)
    shape = (len(header["names"]), header["queries"], header["keys"])
    return header, np.frombuffer(body, "<f4").reshape(shape)


def test_every_value_arrives_as_its_float32():
    weights = np.random.default_rng(0).random((2, 3, 5))
    weights[1, 2, 4] = np.nan
    labels = ["é", "שלום", "</script>", "😀", "a"]
    header, values = unpack(pack(weights, ["a", "b"], labels, title="t", causal=True))
    np.testing.assert_array_equal(values, weights.astype("f4"))
    assert header["labels"] == labels
    assert header["causal"] is True
    assert header["value"] == "weight"
    assert header["largest"] == np.nanmax(weights)


@pytest.mark.parametrize(
    ("weights", "largest", "expected"),
    [
        (np.full((1, 2, 2), 0.25), None, 0.25),
        (np.full((1, 2, 2), 0.25), 0.5, 0.5),
        (np.zeros((1, 2, 2)), None, 1.0),
        (np.full((1, 2, 2), np.nan), None, 1.0),
    ],
)
def test_the_scale_is_a_number_above_zero(weights, largest, expected):
    data = pack(weights, ["a"], ["x", "y"], title="t", causal=False, largest=largest)
    assert unpack(data)[0]["largest"] == expected


@pytest.mark.parametrize(
    ("shape", "names", "labels", "message"),
    [
        ((3, 5), ["a"], "abcde", "2 dimensions"),
        ((2, 3, 5), ["a"], "abcde", "2 heads need"),
        ((2, 3, 5), ["a", "a"], "abcde", "different names"),
        ((2, 3, 5), ["a", "b"], "abcd", "3 queries, 5 keys and 4 labels"),
        ((2, 5, 3), ["a", "b"], "abc", "5 queries, 3 keys"),
        ((MAX_HEADS + 1, 2, 2), range(MAX_HEADS + 1), "ab", "13 heads"),
        ((1, 2, MAX_TOKENS + 1), ["a"], "x" * (MAX_TOKENS + 1), "257 tokens"),
    ],
)
def test_what_does_not_fit_is_refused(shape, names, labels, message):
    with pytest.raises(ValueError, match=message):
        pack(np.zeros(shape), names, labels, title="t", causal=False)
