"""Tables of a page: their height, and their CSV files."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st


def height(table: pd.DataFrame, most: int) -> int:
    """The pixels that `st.dataframe` needs for a table, at most `most`: no row of it is blank."""
    return min(most, height_of(len(table)))


def height_of(n_rows: int) -> int:
    """The pixels that `st.dataframe` needs for so many rows and its headings."""
    return 35 * (n_rows + 1) + 3


def csv(table: pd.DataFrame) -> bytes:
    """The table as a file, without the numbers of its rows."""
    return table.to_csv(index=False).encode()


def download(
    label: str, table: pd.DataFrame, file_name: str, *, key: str, disabled: bool = False
) -> None:
    """A button that saves a table as CSV, made on the click, which does not run the page again."""
    st.download_button(
        label,
        partial(csv, table),
        file_name=file_name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        disabled=disabled,
    )
