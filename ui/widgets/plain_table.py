"""Tables that the browser lays out itself, with any text as it is.

A `st.dataframe` takes 80 ms to draw, in a closed expander too; `st.table` reads text as Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd
import streamlit as st

from ui.text.number_text import legible


def plain_table(
    table: pd.DataFrame, label: str, formats: Mapping[str, str] = {}, *, most: int | None = None
) -> None:
    """Show a table of some tens of rows; `label` is what a screen reader calls it.

    formats: how the numbers of a column are written ("{:.2e}", see `number_text.legible`); without,
    whole ones as "1,234" and others with four decimals, a dash for none. most: the height
    in pixels from which it scrolls.
    Raises: ValueError for a format of a column that the table does not have.
    """
    if unknown := set(formats) - set(table.columns):
        raise ValueError(f"no column {sorted(unknown)} in a table of {list(table.columns)}")
    columns = [_cells(str(name), table[name], formats.get(name)) for name in table.columns]
    heading, *rows = (f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    height = "" if most is None else f' style="max-height: {most}px"'
    st.html(
        f'<div class="table" role="group" tabindex="0" aria-label="{escape(label)}"{height}>'
        f"<table><thead>{heading}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cells(heading: str, column: pd.Series, form: str | None) -> list[str]:
    """The cells of a column as HTML, the heading first; numbers stand at the right."""
    kind, written = "", (str(value) for value in column)
    if pd.api.types.is_numeric_dtype(column):
        form = form or ("{:,}" if pd.api.types.is_integer_dtype(column) else "{:.4f}")
        numbers = ((number, form.format(number)) for number in column.tolist())
        written = (legible(number, text).replace("nan", "–") for number, text in numbers)
        kind = ' class="number"'
    cells = (f"<td{kind}>{escape(text)}</td>" for text in written)
    return [f'<th scope="col"{kind}>{escape(heading)}</th>', *cells]
