"""Test Block in a browser: the steps of a layer, another section, a phone."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import PHONE, click, open_page, set_slider
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/block", "Block")
    set_slider(page, "Step", 0, 2)  # 0 -> 2
    expect(page.locator(".code code").first).to_contain_text("self.out(merge_heads(context))")
    drawn = page.locator(".tensors figure.panel").filter(has_text="outputs of the heads")
    expect(drawn.first).to_be_visible()
    set_slider(page, "Heads", 0, -1)  # 8 -> 4
    expect(page.get_by_text("post-norm, 4 heads of 128")).to_be_visible()
    expect(page).to_have_url(re.compile("block_step=2"))

    page.set_viewport_size(PHONE)
    main = page.get_by_test_id("stMain")
    for section in ("Order of tokens", "Logit lens", "Residual stream"):
        click(page.get_by_role("combobox", name="Section"))
        page.get_by_role("option", name=section).click()
        expect(page).to_have_url(re.compile(f"block_section={section.replace(' ', r'.+')}"))
        wait_until_settled(page)
        assert main.evaluate("element => element.scrollWidth <= element.clientWidth"), section
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
