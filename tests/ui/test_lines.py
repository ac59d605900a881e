"""Test the data that heads drawn as lines send to the browser."""

import numpy as np

from tests.helpers.drawn_tensors import unpack_drawing
from ui.canvas.lines import pack


def unpack(data: bytes) -> tuple[dict, np.ndarray]:
    header, body = unpack_drawing(data)
    shape = (len(header["names"]), header["queries"], header["keys"])
    return header, np.frombuffer(body, "<f4").reshape(shape)


def test_values_are_sent_as_float32():
    weights = np.random.default_rng(0).random((2, 3, 5))
    weights[1, 2, 4] = np.nan
    labels = ["é", "שלום", "</script>", "😀", "a"]
    header, values = unpack(pack(weights, ["a", "b"], labels, title="t", causal=True))
    np.testing.assert_array_equal(values, weights.astype("f4"))
    assert header["labels"] == labels
    assert header["causal"] is True
    assert header["value"] == "weight"
    assert header["largest"] == np.nanmax(weights)
