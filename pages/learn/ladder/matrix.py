"""A visitor's own small matrix: a table to edit, and the same numbers as text in the address.

A table cannot be bound to the address, a text can: an edit of the table writes the text, and a text
that was typed, or came with a link, fills the table.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from serving.limits import MAX_MATRIX_COLUMNS, MAX_MATRIX_ROWS, MAX_MATRIX_VALUE
from ui.widgets import messages
from ui.widgets.linked import linked

MAX_CHARACTERS = 1_500
EMPTY = "?"  # a cell without a number, as text


def parse(text: str) -> np.ndarray:
    """Rows of numbers as float32: blanks or commas between them, ; or a new line after a row.

    Raises: ValueError that names the row and column at fault, both counted from 0.
    """
    lines = [line for line in re.split(r"[;\n]", text) if line.strip()]
    rows = [re.split(r"[\s,]+", line.strip().strip(",").strip()) for line in lines]
    if not rows:
        raise ValueError("The matrix is empty: type numbers, and ; after each row.")
    if len(rows) > MAX_MATRIX_ROWS or len(rows[0]) > MAX_MATRIX_COLUMNS:
        raise ValueError(
            f"The matrix has {len(rows)} rows and {len(rows[0])} columns; at most "
            f"{MAX_MATRIX_ROWS} rows and {MAX_MATRIX_COLUMNS} columns fit."
        )
    for row, cells in enumerate(rows):
        if len(cells) != len(rows[0]):
            raise ValueError(
                f"Row {row} has {len(cells)} numbers, row 0 has {len(rows[0])}: give every row "
                "the same number."
            )
    values = [
        [_number(cell, row, column) for column, cell in enumerate(cells)]
        for row, cells in enumerate(rows)
    ]
    return np.array(values, dtype=np.float32)


def _number(text: str, row: int, column: int) -> float:
    place = f"Row {row}, column {column}"
    if text in ("", EMPTY):
        raise ValueError(f"{place} is empty: type a number there.")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place} is not a number: “{text}”.") from None
    if not math.isfinite(value) or abs(value) > MAX_MATRIX_VALUE:
        raise ValueError(
            f"{place} is {text}: only numbers from −{MAX_MATRIX_VALUE} to {MAX_MATRIX_VALUE} fit."
        )
    return value


def written(frame: pd.DataFrame) -> str:
    """A table as text: the shortest decimals that mean the same float32; `?` where nothing is."""
    return "; ".join(
        " ".join(
            EMPTY if pd.isna(cell) else str(np.float32(cell)).removesuffix(".0") for cell in row
        )
        for row in frame.to_numpy(dtype=object)
    )


def editor(key: str, default: str) -> np.ndarray | None:
    """The table and its text. None, after a message, while the text is not a matrix.

    `key` is the text's name in the address; the table is `key_table_<n>` with a new n whenever the
    text was changed otherwise than in the table.
    """
    typed: str = linked(
        st.text_area,
        "My matrix, as text or in the table below",
        default,
        key=key,
        height=80,
        max_chars=MAX_CHARACTERS,
        help="Blanks between numbers, ; or a new line after each row.",
    )
    state = f"{key}_state"
    values: np.ndarray | None = None
    try:
        values = parse(typed)
    except ValueError as error:
        messages.problem(error)
    number, base, table_text = st.session_state.get(state, (0, parse(default), None))
    if values is not None and typed != table_text:
        number, base, table_text = number + 1, values, typed
        st.session_state[state] = number, base, table_text
    frame = pd.DataFrame(base, columns=[str(column) for column in range(base.shape[1])])
    table_key = f"{key}_table_{number}"

    def take_over() -> None:
        edited = apply(frame, st.session_state[table_key])
        text = written(edited)
        st.session_state[key] = text
        st.session_state[state] = number, base, text

    st.data_editor(
        frame,
        key=table_key,
        num_rows="dynamic",
        hide_index=False,
        height=200,
        on_change=take_over,
        column_config={
            name: st.column_config.NumberColumn(
                min_value=-MAX_MATRIX_VALUE, max_value=MAX_MATRIX_VALUE, width="small"
            )
            for name in frame.columns
        },
    )
    return values


def apply(frame: pd.DataFrame, changes: dict[str, Any]) -> pd.DataFrame:
    """The table after the changes that Streamlit reports: edited, deleted, then added rows."""
    rows = frame.astype(object).to_dict("index")
    for row, cells in changes.get("edited_rows", {}).items():
        rows[int(row)].update(cells)
    for row in changes.get("deleted_rows", []):
        del rows[int(row)]
    added = [
        {name: cells.get(name) for name in frame.columns} for cells in changes.get("added_rows", [])
    ]
    return pd.DataFrame([*rows.values(), *added], columns=frame.columns, dtype=object)
