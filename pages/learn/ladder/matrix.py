"""An editor for a small matrix: a table, and the same numbers as text in the URL.

Streamlit can bind a text to the URL but not a table. So edits of the table update the text, and a
text that was typed or came with a link fills the table.
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
    """Parse rows of numbers as float32.

    Numbers are separated by spaces or commas, rows by semicolons or line breaks.
    Raises: ValueError that names the row and column of the mistake, counted from 0.
    """
    lines = [line for line in re.split(r"[;\n]", text) if line.strip()]
    rows = [re.split(r"[\s,]+", line.strip().strip(",").strip()) for line in lines]
    if not rows:
        raise ValueError("The matrix is empty. Type numbers, with ; after each row.")
    if len(rows) > MAX_MATRIX_ROWS or len(rows[0]) > MAX_MATRIX_COLUMNS:
        raise ValueError(
            f"The matrix has {len(rows)} rows and {len(rows[0])} columns. The limit is "
            f"{MAX_MATRIX_ROWS} rows and {MAX_MATRIX_COLUMNS} columns."
        )
    for row, cells in enumerate(rows):
        if len(cells) != len(rows[0]):
            raise ValueError(
                f"Row {row} has {len(cells)} numbers, but row 0 has {len(rows[0])}. All rows must "
                "have the same length."
            )
    values = [
        [_number(cell, row, column) for column, cell in enumerate(cells)]
        for row, cells in enumerate(rows)
    ]
    return np.array(values, dtype=np.float32)


def _number(text: str, row: int, column: int) -> float:
    place = f"Row {row}, column {column}"
    if text in ("", EMPTY):
        raise ValueError(f"{place} is empty. Type a number there.")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place} is not a number: “{text}”.") from None
    if not math.isfinite(value) or abs(value) > MAX_MATRIX_VALUE:
        raise ValueError(
            f"{place} is {text}, but must be between −{MAX_MATRIX_VALUE} and {MAX_MATRIX_VALUE}."
        )
    return value


def format_matrix(frame: pd.DataFrame) -> str:
    """Format a table as text: the shortest exact float32 of each number, `?` for empty cells."""
    return "; ".join(
        " ".join(
            EMPTY if pd.isna(cell) else str(np.float32(cell)).removesuffix(".0") for cell in row
        )
        for row in frame.to_numpy(dtype=object)
    )


def editor(key: str, default: str) -> np.ndarray | None:
    """Show the table and its text. Returns None, after a message, for invalid text.

    key: the name of the text in the URL. The table's key is `key_table_<n>`, with a new n whenever
    the text changes without an edit of the table.
    """
    typed: str = linked(
        st.text_area,
        "My matrix (edit the text or the table)",
        default,
        key=key,
        height=80,
        max_chars=MAX_CHARACTERS,
        help="Put spaces between numbers, and ; or a line break after each row.",
    )
    state = f"{key}_state"
    values: np.ndarray | None = None
    try:
        values = parse(typed)
    except ValueError as error:
        messages.show_problem(error)
    number, base, table_text = st.session_state.get(state, (0, parse(default), None))
    if values is not None and typed != table_text:
        number, base, table_text = number + 1, values, typed
        st.session_state[state] = number, base, table_text
    frame = pd.DataFrame(base, columns=[str(column) for column in range(base.shape[1])])
    table_key = f"{key}_table_{number}"

    def take_over() -> None:
        edited = apply(frame, st.session_state[table_key])
        text = format_matrix(edited)
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
    """Apply the changes that Streamlit reports: edited, deleted and added rows."""
    rows = frame.astype(object).to_dict("index")
    for row, cells in changes.get("edited_rows", {}).items():
        rows[int(row)].update(cells)
    for row in changes.get("deleted_rows", []):
        del rows[int(row)]
    added = [
        {name: cells.get(name) for name in frame.columns} for cells in changes.get("added_rows", [])
    ]
    return pd.DataFrame([*rows.values(), *added], columns=frame.columns, dtype=object)
