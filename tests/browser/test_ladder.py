"""The ladder in a browser: climb, point at a score, edit the matrix, share the link."""

import re
import urllib.parse
from itertools import product

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.learn.ladder import stages
from tests.helpers.browser import click, open_page, open_whole_page, set_slider, whole
from tests.helpers.panels import expect_cell, framed_by, panel
from tests.helpers.visitors import settled

MATRIX = "My matrix (edit the text or the table)"


def test_climbing_every_rung(page: Page, site: Site):
    open_page(page, site, "/ladder", "Ladder")
    for number, name in enumerate(stages.RUNGS, start=1):
        click(page.get_by_role("radio", name=name, exact=True))
        expect(page.get_by_role("heading", name=f"Rung {number} of 7: {name}")).to_be_visible()
        settled(page)  # until then the panels of the rung before may stand beside those of this one
        last = "output" if name in ("wrapper", "splits") else "context"
        expect(panel(page, last)).to_be_visible()
        expect(page.get_by_text("largest difference is")).to_be_visible()
    expect(page).to_have_url(re.compile("ladder_rung=splits"))


def test_a_score_is_read_and_computed_by_hand(page: Page, site: Site):
    open_whole_page(page, site, "/ladder?ladder_rung=v1", "Ladder")
    rung = stages.climb("v1", stages.example("journey"))
    score = float(rung.record.scores[4, 2])
    said = expect_cell(page, "scores", (4, 2), score)
    assert "query 4 “one”, key 2 “starts”" in said
    set_slider(page, "Row i (query)", 0, 3)  # 1 -> 4
    set_slider(page, "Row j (key)", 0, -1)  # 3 -> 2
    expect(page.get_by_text(f"cell of the tensor {score:.6f}")).to_be_visible()
    expect(page.get_by_text(f"Token 4 for token 2: {score:.4f}")).to_be_visible()


def test_pointing_frames_what_a_number_was_computed_from(page: Page, site: Site):
    """Six tokens of three columns; two heads of two columns each."""
    open_page(page, site, "/ladder?ladder_rung=splits&ladder_d_out=4", "Ladder")
    shapes: dict[str, tuple[int, ...]] = {
        "x": (6, 3), "W_query": (4, 3), "W_key": (4, 3), "k": (2, 6, 2), "v": (2, 6, 2),
        "weights": (2, 6, 6), "context": (2, 6, 2), "out_proj.weight": (4, 4),
    }  # fmt: skip
    for name in shapes:
        expect(panel(page, name).locator("canvas")).to_be_visible()

    def framed(name: str, *cell: int) -> dict[str, set[tuple[int, ...]]]:
        others = {other: shape for other, shape in shapes.items() if other != name}
        _, _, places = framed_by(page, name, cell, others)
        return {other: cells for other, cells in places.items() if cells}

    def along(*axes: int | range) -> set[tuple[int, ...]]:
        return set(product(*([axis] if isinstance(axis, int) else axis for axis in axes)))

    # row 4, column 1 of head 0
    assert framed("k", 4, 1, 0) == {"x": along(4, range(3)), "W_key": along(1, range(3))}
    assert framed("context", 3, 1, 0) == {
        "weights": along(0, 3, range(6)), "v": along(0, range(6), 1),
    }  # fmt: skip
    assert framed("output", 3, 2) == {
        "context": along(range(2), 3, range(2)), "out_proj.weight": along(2, range(4)),
    }  # fmt: skip


def test_the_table_writes_the_text_and_the_link_fills_the_table(
    page: Page, site: Site, other: Page
):
    open_page(page, site, "/ladder?ladder_input=my+matrix", "Ladder")
    text = page.get_by_role("textbox", name=MATRIX)
    expect(text).to_have_value("1 0 0; 0 2 0; 1 1 0; 0 0 -1")
    expect(panel(page, "x")).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first
    cell = page.locator("#portal input")

    def edit(y: int, number: str) -> None:
        settled(page)
        table.locator(".dvn-scroller").dblclick(position={"x": 450, "y": y})
        cell.fill(number)
        cell.press("Enter")

    edit(88, "7.5")  # row 1, column 1: behind the row markers and the index
    expect(text).to_have_value("1 0 0; 0 7.5 0; 1 1 0; 0 0 -1")
    expect(page).to_have_url(re.compile(r"ladder_matrix=.*7\.5"))
    # a second edit adds to the first, and what was edited is drawn
    edit(123, "-3")
    both = "1 0 0; 0 7.5 0; 1 -3 0; 0 0 -1"
    expect(text).to_have_value(both)
    expect_cell(page, "x", (1, 1), 7.5)
    other.goto(page.url)
    expect(panel(other, "x")).to_be_visible()
    expect(other.get_by_role("textbox", name=MATRIX)).to_have_value(both)
    expect_cell(other, "x", (2, 1), -3.0)


def test_a_matrix_that_is_none_stays_in_its_box(page: Page, site: Site):
    bad = "1 2; <img src=x onerror=alert(1)> 3"
    query = urllib.parse.urlencode({"ladder_input": "my matrix", "ladder_matrix": bad})
    open_whole_page(page, site, f"/ladder?{query}", "Ladder")
    expect(page.get_by_role("alert").filter(has_text="Row 1 has")).to_be_visible()
    expect(page.get_by_role("textbox", name=MATRIX)).to_have_value(bad)
    assert page.locator("img[src='x']").count() == 0
    expect(page.get_by_text("Predict, then look")).to_be_visible()


@pytest.mark.parametrize("path", ["/ladder?ladder_rung=wrapper&ladder_heads=4", "/masking"])
def test_nothing_sticks_out_on_a_phone(phone: Page, site: Site, path: str):
    phone.goto(site.url + whole(path))
    expect(phone.locator("figure.panel canvas").first).to_be_visible()
    expect(phone.get_by_text("Predict, then look")).to_be_visible()
    settled(phone)
    table = phone.locator(".table, [data-testid=stDataFrame]").filter(visible=True).first
    table.hover()  # what was touched stays hovered over
    toolbar = phone.get_by_test_id("stElementToolbar").filter(visible=True)
    expect(toolbar).to_have_count(0)  # it would lie over the text above the table
    inside = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert phone.evaluate(inside)
