"""Plain HTML tables that show any text verbatim.

`st.dataframe` takes 80 ms to draw, even in a closed expander, and `st.table` parses text as
Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd
import streamlit as st

from ui.text.formatting import prettify


def plain_table(
    table: pd.DataFrame, label: str, formats: Mapping[str, str] = {}, *, max_rows: int | None = None
) -> None:
    """Show a table with up to a few dozen rows. label: its name for screen readers.

    formats: number formats by column ("{:.2e}", then `number_text.prettify`). By default, integers
    look like "1,234", other numbers have four decimals, and NaN is a dash. max_rows: maximum height
    in pixels, beyond which the table scrolls.
    Raises: ValueError if a format's column isn't in the table.
    """
    if unknown := set(formats) - set(table.columns):
        raise ValueError(f"no columns {sorted(unknown)} in the table; it has {list(table.columns)}")
    columns = [_cells(str(name), table[name], formats.get(name)) for name in table.columns]
    heading, *rows = (f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    height = "" if max_rows is None else f' style="max-height: {max_rows}px"'
    st.html(
        f'<div class="table" role="group" tabindex="0" aria-label="{escape(label)}"{height}>'
        f"<table><thead>{heading}</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cells(heading: str, column: pd.Series, form: str | None) -> list[str]:
    """The cells of a column as HTML, heading first; numbers are right-aligned."""
    kind, written = "", (str(value) for value in column)
    if pd.api.types.is_numeric_dtype(column):
        form = form or ("{:,}" if pd.api.types.is_integer_dtype(column) else "{:.4f}")
        numbers = ((number, form.format(number)) for number in column.tolist())
        written = (prettify(number, text).replace("nan", "–") for number, text in numbers)
        kind = ' class="number"'
    cells = (f"<td{kind}>{escape(text)}</td>" for text in written)
    return [f'<th scope="col"{kind}>{escape(heading)}</th>', *cells]
