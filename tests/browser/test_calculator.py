"""Test the Calculator in a browser: an example, the keyboard, a link, a download, chart tools."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    PHONE,
    choose_example,
    click,
    open_whole_page,
    set_slider,
    settings,
    unfold,
)


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/calculator", "Calculator")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(3)
    choose_example(page, "Lecture: DeepSeek")
    expect(page.get_by_role("heading", name="399.8 GB of cache")).to_be_visible()
    set_slider(page, "Batch size (sequences)", 0, 1)  # 1 -> 2
    expect(page.get_by_role("heading", name="799.5 GB of cache")).to_be_visible()
    with settings(page):
        click(page.get_by_text("Count as plain multi-head attention"))
    expect(page.get_by_role("heading", name="14.05 GB of cache")).to_be_visible()
    expect(page).to_have_url(re.compile("calculator_batch=2"))
    page.reload()
    expect(page.get_by_role("heading", name="14.05 GB of cache")).to_be_visible()
    unfold(page, "Shapes, bytes and sources")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Download all models (CSV)"))
    table = Path(download.value.path()).read_text(encoding="utf-8")
    assert "DeepSeek-V3,MLA,61,128,128,128" in table

    # chart tools don't cover any controls, and they're hidden on a phone
    chart, tools = page.locator(".stVegaLiteChart").first, page.get_by_test_id("stElementToolbar")
    chart.hover()
    expect(tools.first).to_be_visible()
    box = tools.first.bounding_box()
    examples = page.get_by_role("button", name="Examples").bounding_box()
    assert box is not None
    assert examples is not None
    assert box["y"] >= examples["y"] + examples["height"]
    page.set_viewport_size(PHONE)
    chart.hover()
    expect(tools.filter(visible=True)).to_have_count(0)
