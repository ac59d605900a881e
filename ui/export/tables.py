"""The height of tables, and their CSV files."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st


def height(table: pd.DataFrame, max_height: int) -> int:
    """Height of `st.dataframe` in pixels so that it has no blank rows, at most `max_height`."""
    return min(max_height, height_for(len(table)))


def height_for(n_rows: int) -> int:
    """Height of `st.dataframe` in pixels for `n_rows` rows and a heading."""
    return 35 * (n_rows + 1) + 3


def csv(table: pd.DataFrame) -> bytes:
    """The table as CSV, without row numbers."""
    return table.to_csv(index=False).encode()


def download(
    label: str, table: pd.DataFrame, file_name: str, *, key: str, disabled: bool = False
) -> None:
    """A button that downloads a table as CSV. The file is created on the click, without a rerun."""
    st.download_button(
        label,
        partial(csv, table),
        file_name=file_name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        disabled=disabled,
    )
