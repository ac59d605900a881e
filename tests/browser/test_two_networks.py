"""Test From two networks to one in a browser: a date, a row by keyboard, a section, a link."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    click,
    expect_next_page,
    expect_parameter,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    type_text,
)
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/two-networks", "From two networks to one")
    expect(page.get_by_text("the decoder wrote 1998-05-03. That's correct.")).to_be_visible()
    type_text(page, "A date in English", "december 24, 2026")
    expect(page.get_by_text("the decoder wrote 2026-12-24. That's correct.")).to_be_visible()
    cross = heatmap(page, "cross-attention")
    press(cross.locator(".scroll canvas"), "ArrowUp")  # shows which cell is read first
    expect(cross.locator(".readout")).to_have_attribute("data-cell", "6 0")  # in the framed row
    press(cross.locator(".scroll canvas"), *["ArrowUp"] * 4, "ArrowRight")
    read_by_keyboard(cross, "“2” → “e”")
    page.keyboard.press("Enter")
    expect_parameter(page, "two_networks_symbol", "2")
    expect(page.get_by_text(re.compile("^To write symbol 2 of its answer, “2”"))).to_be_visible()
    click(page.get_by_role("radio", name="All through one vector"))
    expect(page.get_by_text("With one vector", exact=True)).to_be_visible()
    expect_next_page(page, "Who sets the weights")

    wait_until_settled(page)
    page.reload()
    expect(page.get_by_text("With one vector", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("^To write symbol 2 of its answer, “2”"))).to_be_visible()
