"""The panels of small tensors: what reaches the browser, and what is refused."""

import numpy as np
import pytest

from tests.helpers.drawn_tensors import unpacked
from ui.canvas.tensors import MAX_CELLS, Made, Panel, pack, tensors


def test_every_part_arrives_aligned_and_exact():
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
    header, numbers = unpacked(data)
    assert [panel["shape"] for panel in header["panels"]] == [[2, 3, 5], [7]]
    assert header["panels"][0]["rows"] == ["é", "שלום", "c"]
    assert header["panels"][0]["shapeText"] == "batch of 2 × 3 tokens × 5 columns"
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f4", 30).reshape(2, 3, 5), values)
    np.testing.assert_array_equal(np.frombuffer(numbers, "<i4", 30, 120), np.arange(30))
    np.testing.assert_array_equal(np.frombuffer(numbers, "<f4", 7, 240), other.astype("f4"))
    assert len(numbers) == 4 * (30 + 30 + 7 + 7)


def test_how_numbers_were_made_arrives_behind_them():
    rng = np.random.default_rng(1)
    operands, added = rng.normal(size=(2, 3, 4, 2)), rng.normal(size=(2, 3))
    sizes = {"t": 2, "c": 9, "d": 3}
    made = Made("product", "tc,cd->td", ("x", "W"), sizes, operands, 9, added)
    panel = Panel("y", np.zeros((2, 3)), ("token", "column"), identity="4 y", made=made)
    header, numbers = unpacked(pack([panel]))
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
    with pytest.raises(ValueError, match=r"y is \(2, 4\), its operands \(2, 3, 4, 2\)"):
        Panel("y", np.zeros((2, 4)), ("token", "column"), made=made)


def test_a_window_names_the_shape_of_the_whole():
    panel = Panel("p", np.zeros((2, 3)), ("token", "column"), whole=(7, 11))
    assert panel.shape_text == "7 tokens × 11 columns; drawn: 2 × 3"
    assert Panel("p", np.zeros((2, 3)), ("token", "column")).shape_text == "2 tokens × 3 columns"


def test_a_growing_tensor_says_what_is_there_and_what_is_boxed():
    panel = Panel(
        "p",
        np.zeros((4, 5)),
        ("token", "column"),
        filled=(3, 5),
        box=(2, 5),
        box_note="computed before",
    )
    data = pack([panel])
    (header,) = unpacked(data)[0]["panels"]
    assert (header["there"], header["box"]) == ([3, 5], [2, 5])
    assert header["boxNote"] == "computed before"
    assert Panel("v", np.zeros(5), ("column",), box=(1, 5)).box == (1, 5)  # a vector is one row


def test_a_picture_says_what_rows_and_columns_are_of_tensors_that_are_alike():
    rows = Panel("x", np.zeros((2, 3)), ("token", "column"))
    square = Panel("w", np.zeros((1, 2, 2)), ("head", "query", "key"), quantity="weights")
    vector = Panel("v", np.zeros(3), ("column",))

    def says(*panels: Panel) -> str:
        return unpacked(pack(panels))[0]["says"]

    looks = "A row is the token that looks, a column the token looked at."
    assert says(square) == looks
    assert says(rows, rows) == "A row is a token, a column one number of its vector."
    assert says(rows, square, rows) == f"x, x: {says(rows)} w: {looks}"
    assert says(vector) == "A row is one vector, a column one number of it."
    quantities = [panel["quantity"] for panel in unpacked(pack([rows, square]))[0]["panels"]]
    assert quantities == ["", "weights"]


def test_labels_may_differ_from_block_to_block():
    rows = (("a", "b", "c"), ("d", "e", "f"))
    data = pack([Panel("p", np.zeros((2, 3, 4)), ("batch", "token", "column"), rows=rows)])
    header, _ = unpacked(data)
    assert header["panels"][0]["rows"] == [["a", "b", "c"], ["d", "e", "f"]]
    assert header["panels"][0]["columns"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": np.zeros((1, 1, 1, 1, 1))}, "5 dimensions"),
        ({"axes": ("token",)}, "2 dimensions but 1 axes"),
        ({"filled": (3, 1)}, r"is \(2, 3\): it has no part of \(3, 1\)"),
        ({"box": (2, -1)}, r"is \(2, 3\): it has no part of \(2, -1\)"),
        ({"cells": np.zeros((3, 2))}, r"is \(2, 3\) but its identities are \(3, 2\)"),
        ({"rows": ["one"]}, "1 labels for an axis of 2"),
        ({"positions": (range(3), range(2))}, r"is \(2, 3\) but its positions are \(3, 2\)"),
        ({"rows": [["a", "b"]]}, "labels for 1 of 2 blocks"),
        ({"rows": [["a", "b"], ["c"]]}, "1 labels for an axis of 2"),
        ({"columns": ["one"]}, "1 labels for an axis of 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options: dict, message: str):
    given = {"values": np.zeros((2, 3)), "axes": ("token", "column"), **options}
    with pytest.raises(ValueError, match=message):
        Panel("p", **given)


def test_too_many_cells_are_refused():
    panel = Panel("p", np.zeros((MAX_CELLS + 1, 1)), ("token", "column"))
    with pytest.raises(ValueError, match=f"{MAX_CELLS + 1} cells"):
        tensors([panel], key="k")
