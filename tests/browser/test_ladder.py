"""Test the ladder in a browser: climb, point at a number, edit the matrix, share the link."""

import re
from itertools import product

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_page
from tests.helpers.panels import expect_cell, framed_cells, panel, read
from tests.helpers.visitors import wait_until_settled


def test_pointing_shows_the_inputs_of_a_number(page: Page, site: Site):
    """Six tokens with three columns, and two heads with two columns each."""
    open_page(page, site, "/ladder?ladder_rung=v1&ladder_d_out=4", "Ladder")
    assert "query 4 “one”, key 2 “starts”" in read(page, "scores", 4, 2)
    click(page.get_by_role("radio", name="splits", exact=True))
    expect(page.get_by_role("heading", name="Rung 7 of 7: splits")).to_be_visible()
    expect(page).to_have_url(re.compile("ladder_rung=splits"))
    wait_until_settled(page)
    shapes: dict[str, tuple[int, ...]] = {"weights": (2, 6, 6), "v": (2, 6, 2), "x": (6, 3)}
    _, _, places = framed_cells(page, "context", (3, 1, 0), shapes)
    assert places == {
        "weights": {(0, 3, key) for key in range(6)},
        "v": {(0, key, 1) for key in range(6)},
        "x": set(),
    }
    shapes = {"context": (2, 6, 2), "out_proj.weight": (4, 4)}
    _, _, places = framed_cells(page, "output", (3, 2), shapes)
    assert places == {
        "context": set(product(range(2), [3], range(2))),
        "out_proj.weight": {(2, column) for column in range(4)},
    }


def test_table_fills_the_text_and_link_fills_the_table(page: Page, site: Site):
    open_page(page, site, "/ladder?ladder_input=my+matrix", "Ladder")
    text = page.get_by_role("textbox", name="My matrix (edit the text or the table)")
    expect(text).to_have_value("1 0 0; 0 2 0; 1 1 0; 0 0 -1")
    expect(panel(page, "x")).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first
    cell = page.locator("#portal input")

    def edit(y: int, number: str) -> None:
        wait_until_settled(page)
        table.locator(".dvn-scroller").dblclick(position={"x": 450, "y": y})
        cell.fill(number)
        cell.press("Enter")

    edit(88, "7.5")  # row 1, column 1: after the row markers and the index
    expect(text).to_have_value("1 0 0; 0 7.5 0; 1 1 0; 0 0 -1")
    # a second edit keeps the first, and the edited matrix is drawn
    edit(123, "-3")
    both = "1 0 0; 0 7.5 0; 1 -3 0; 0 0 -1"
    expect(text).to_have_value(both)
    expect_cell(page, "x", (1, 1), 7.5)
    wait_until_settled(page)
    page.reload()
    expect(text).to_have_value(both)
    expect_cell(page, "x", (2, 1), -3.0)
