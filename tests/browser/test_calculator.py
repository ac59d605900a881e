"""The page "Calculator" as a visitor walks it: an example, the keyboard, a link, a download."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose_example,
    click,
    open_page,
    open_whole_page,
    set_slider,
    settings,
    unfold,
)


def test_an_example_then_the_keyboard_then_the_link(page: Page, site: Site):
    open_whole_page(page, site, "/calculator", "Calculator")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(3)
    choose_example(page, "Lecture: DeepSeek")
    expect(page.get_by_role("heading", name="399.8 GB of cache")).to_be_visible()
    expect(page.get_by_text("= 399,769,600,000 bytes")).to_be_visible()
    set_slider(page, "Batch size (sequences)", 0, 1)  # 1 -> 2
    expect(page.get_by_role("heading", name="799.5 GB of cache")).to_be_visible()
    with settings(page):
        click(page.get_by_text("Count as plain multi-head attention"))
    expect(page.get_by_role("heading", name="14.05 GB of cache")).to_be_visible()
    expect(page).to_have_url(re.compile("calculator_batch=2"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_role("heading", name="14.05 GB of cache")).to_be_visible()
    unfold(page, "Shapes, bytes and sources")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Download all models (CSV)"))
    table = Path(download.value.path()).read_text(encoding="utf-8")
    assert "DeepSeek-V3,MLA,61,128,128,128" in table


def test_the_buttons_of_a_chart_cover_no_control(page: Page, site: Site):
    open_page(page, site, "/calculator", "Calculator")
    page.locator(".stVegaLiteChart").first.hover()
    toolbar = page.get_by_test_id("stElementToolbar").first
    expect(toolbar).to_be_visible()
    top = toolbar.evaluate("element => element.getBoundingClientRect().top")
    examples = page.get_by_role("button", name="Examples")
    assert top >= examples.evaluate("element => element.getBoundingClientRect().bottom")
