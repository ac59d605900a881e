"""The user's own matrix as text and as a table, and invalid input."""

import numpy as np
import pandas as pd
import pytest

from pages.learn.ladder.matrix import apply, format_matrix, parse
from serving.limits import MAX_MATRIX_COLUMNS, MAX_MATRIX_ROWS


@pytest.mark.parametrize(
    "text", ["1 2; 3 -4.5", "1,2\n3,-4.5", " 1, 2 ;\n 3   -45e-1 ;", "1 2 \r\n 3 -4.5"]
)
def test_equivalent_notations(text: str):
    values = parse(text)
    np.testing.assert_array_equal(values, np.array([[1, 2], [3, -4.5]], dtype="f4"))
    assert values.dtype == np.float32


def test_text_and_table_give_the_same_float32():
    values = np.random.default_rng(0).uniform(-100, 100, (12, 8)).astype("f4")
    text = format_matrix(pd.DataFrame(values))
    np.testing.assert_array_equal(parse(text), values)
    assert format_matrix(pd.DataFrame(parse(text))) == text
    assert len(text) < 1_500  # The limit of the text box and the address.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ; \n ", "empty"),
        ("1 2; 3", "Row 1 .* 1 .* 2"),
        ("1 two", "Row 0, column 1 .*two"),
        ("1; nan", "Row 1, column 0 .*nan"),
        ("-Infinity", "-Infinity"),
        ("100.5", "100.5"),
        ("1 ?", "column 1"),
        (" ".join("1" * (MAX_MATRIX_COLUMNS + 1)), f"{MAX_MATRIX_COLUMNS + 1} columns"),
        (";".join("1" * (MAX_MATRIX_ROWS + 1)), f"{MAX_MATRIX_ROWS + 1} rows"),
    ],
)
def test_rejects_invalid_matrices(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_table_edits_update_the_text():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], columns=["0", "1"])
    changes = {
        "edited_rows": {0: {"1": -7.25}, 2: {"0": None}},
        "deleted_rows": [1],
        "added_rows": [{"0": 8}, {}],
    }
    text = format_matrix(apply(frame, changes))
    assert text == "1 -7.25; ? 6; 8 ?; ? ?"
    assert format_matrix(apply(frame, {"edited_rows": {}, "deleted_rows": [0, 1, 2]})) == ""
