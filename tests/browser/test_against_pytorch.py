"""Test Against PyTorch in a browser: change the number of heads, run a measurement."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_whole_page, set_slider


def test_main_path(page: Page, site: Site):
    link = "/against-pytorch?against_pytorch_time_width=192&against_pytorch_time_tokens=16"
    open_whole_page(page, site, link, "Against PyTorch")
    expect(page.locator(".tensors").first).to_contain_text("nn.MultiheadAttention")
    set_slider(page, "Heads H", 0, 4)  # 4 -> 8
    expect(page.get_by_text("3 × 8 = 24", exact=False)).to_be_visible()
    expect(page).to_have_url(re.compile("against_pytorch_heads=8"))
    click(page.get_by_role("button", name="Measure times"))
    expect(page.get_by_text(re.compile(r"Measured at .* width 192, 16 tokens"))).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart")).to_contain_text("wrapper")
