"""Test Attention without the matrix in a browser: step through tiles, change section and URL."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_next_page,
    expect_parameter,
    heatmap,
    last_number,
    open_page,
    press,
    read_cell,
    set_slider,
)

PREFIX = "attention_without_the_matrix"


def test_main_path(page: Page, site: Site):
    address = f"/attention-without-the-matrix?{PREFIX}_step=1"
    open_page(page, site, address, "Attention without the matrix")
    expect(page.get_by_text(re.compile("queries 0 to 3 and keys 0 to 3"))).to_be_visible()
    # the first token only attends to itself, so its output is its value and one tile is enough
    drawn = heatmap(page, "o of SmolLM2")
    first = last_number(read_cell(drawn, 0, 8))
    press(page.get_by_role("heading", level=1), "ArrowRight")
    expect_parameter(page, f"{PREFIX}_step", "2")
    expect(page.get_by_text(re.compile("queries 4 to 7 and keys 0 to 3"))).to_be_visible()
    assert last_number(read_cell(drawn, 0, 8)) != first

    set_slider(page, "Tokens T", 0, 1)  # 8,192 -> 16,384
    expect_parameter(page, f"{PREFIX}_tokens", "16384")
    expect(page.get_by_role("cell", name="1.07 GB")).to_be_visible()
    expect_next_page(page, "Block")
