"""Test Variants in a browser: step through the variants by keyboard, run a measurement."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_whole_page, press, set_slider


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/variants?variants_heads=8&variants_context=256", "Variants")
    expect(page.get_by_text("2 query heads share each key/value head")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(4)
    set_slider(page, "Form of attention", 0, 3)  # GQA 4 -> GQA 2 -> MQA -> MLA
    expect(page.get_by_text("288 + 36 = 324 numbers per token and layer")).to_be_visible()
    expect(page).to_have_url(re.compile("variants_form=MLA"))
    press(page.get_by_role("radio", name="The time of a decode step"), "Space")
    press(page.get_by_role("button", name="Measure decode steps"), "Enter")
    expect(
        page.get_by_text(re.compile(r"MLA takes [\d.]+ of MHA's time when absorbed"))
    ).to_be_visible()
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Download the times (CSV)"))
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    forms = ["MHA", "GQA 4", "GQA 2", "MQA", "MLA absorbed", "MLA expanded"]
    assert [line.split(",")[0] for line in lines[1:]] == forms
