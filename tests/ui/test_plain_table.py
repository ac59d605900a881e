"""Test plain tables: cells are displayed literally, and numbers in the requested format."""

import pandas as pd
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import plain_tables

HOSTILE = '</td></table><img src=x onerror="alert(1)"> [a](http://b.c) $x$ `y` &amp;'


def body(table: pd.DataFrame, **options: object) -> str:
    def page(table, options):
        from ui.widgets.plain_table import plain_table

        plain_table(table, '"><img src=y>', **options)

    site = AppTest.from_function(page, args=(table, options)).run()
    assert not site.exception
    [element] = site.get("html")
    assert "<img" not in element.proto.body
    [displayed] = plain_tables(site)
    assert list(displayed.columns) == list(table.columns)
    assert len(displayed) == len(table)
    for name, texts in table.select_dtypes(exclude="number").items():
        assert displayed[name].tolist() == texts.tolist()
    return str(element.proto.body)


def test_texts_are_displayed_literally():
    body(pd.DataFrame({HOSTILE: [HOSTILE, "", "  two  spaces"], "n": [1, 2, 3]}))


def test_number_formats():
    table = pd.DataFrame(
        {"id": [1306], "bytes": [46080], "difference": [-2.5e-6], "share": [1 / 3]}
    )
    html = body(table, formats={"id": "{}", "difference": "{:.1e}"})
    cells = [
        f'<td class="number">{cell}</td>' for cell in ("1306", "46,080", "−2.5 × 10⁻⁶", "0.3333")
    ]
    assert "".join(cells) in html
    assert "max-height" not in html
    assert "max-height: 250px" in body(table, max_rows=250)
