"""Test panels of small tensors: their data, and invalid input."""

import numpy as np
import pytest

from tests.helpers.drawn_tensors import unpack_drawing
from ui.canvas.tensors import Panel, Provenance, pack


def test_every_part_is_aligned_and_exact():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 3, 5)).astype("f4")
    cells = np.arange(30).reshape(2, 3, 5)
    other = rng.normal(size=7)
    data = pack(
        [
            Panel("a", values, ("batch", "token", "column"), rows=["é", "שלום", "c"], cells=cells),
            Panel("b", other, ("column",), groups=np.full(7, -1)),
        ],
        colour="value",
    )
    header, numbers = unpack_drawing(data)
    assert [panel["shape"] for panel in header["panels"]] == [[2, 3, 5], [7]]
    assert header["panels"][0]["rows"] == ["é", "שלום", "c"]
    assert header["panels"][0]["shapeText"] == "batch of 2 × 3 tokens × 5 columns"
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f4", 30).reshape(2, 3, 5), values)
    np.testing.assert_array_equal(np.frombuffer(numbers, "<i4", 30, 120), np.arange(30))
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f4", 7, 240), other.astype("f4"))
    assert len(numbers) == 4 * (30 + 30 + 7 + 7)


def test_provenance_is_packed():
    rng = np.random.default_rng(1)
    operands, added = rng.normal(size=(2, 3, 4, 2)), rng.normal(size=(2, 3))
    sizes = {"t": 2, "c": 9, "d": 3}
    provenance = Provenance("product", "tc,cd->td", ("x", "W"), sizes, operands, 9, added)
    panel = Panel("y", np.zeros((2, 3)), ("token", "column"), identity="4 y", provenance=provenance)
    header, numbers = unpack_drawing(pack([panel]))
    assert header["panels"][0]["identity"] == "4 y"
    assert header["panels"][0]["made"] == {
        "kind": "product",
        "equation": "tc,cd->td",
        "sources": ["x", "W"],
        "sizes": sizes,
        "nOperands": 4,
        "nTerms": 9,
        "added": True,
    }
    sent = np.frombuffer(numbers, "<f4", 48, 24).reshape(operands.shape)
    np.testing.assert_array_equal(sent, operands.astype("f4"))
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f4", 6, 216), added.ravel().astype("f4"))
    assert len(numbers) == 4 * (6 + 48 + 6)
    with pytest.raises(ValueError, match=r"y is \(2, 4\) but its operands are \(2, 3, 4, 2\)"):
        Panel("y", np.zeros((2, 4)), ("token", "column"), provenance=provenance)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"values": np.zeros((1, 1, 1, 1, 1))}, "5"),
        ({"axes": ("token",)}, "2.*1"),
        ({"filled": (3, 1)}, r"\(2, 3\).*\(3, 1\)"),
        ({"box": (2, -1)}, r"\(2, 3\).*\(2, -1\)"),
        ({"cells": np.zeros((3, 2))}, r"\(2, 3\).*\(3, 2\)"),
        ({"rows": ["one"]}, "1.*2"),
        ({"positions": (range(3), range(2))}, r"\(2, 3\).*\(3, 2\)"),
        ({"columns": ["one"]}, "1.*3"),
    ],
)
def test_invalid_panels_are_rejected(options: dict, numbers: str):
    inputs = {"values": np.zeros((2, 3)), "axes": ("token", "column"), **options}
    with pytest.raises(ValueError, match=numbers):
        Panel("p", **inputs)
