"""Against PyTorch in a browser: compare, be told what does not fit, measure."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, open_whole_page, set_slider, settings
from tests.helpers.visitors import settled

URL, TITLE = "/against-pytorch", "Against PyTorch"


def test_the_comparison_follows_the_controls(page: Page, site: Site):
    open_whole_page(page, site, URL, TITLE)
    figure = page.locator("figure.tensors, .tensors").first
    expect(figure).to_contain_text("nn.MultiheadAttention")
    counted = page.get_by_text("3 × 4 = 12", exact=False)
    expect(counted).to_be_visible()
    set_slider(page, "Heads H", 0, 4)  # 4 -> 8
    expect(page.get_by_text("3 × 8 = 24", exact=False)).to_be_visible()
    expect(page).to_have_url(re.compile("against_pytorch_heads=8"))


def test_heads_that_do_not_divide_say_what_to_do(page: Page, site: Site):
    open_whole_page(page, site, f"{URL}?against_pytorch_width=64&against_pytorch_heads=12", TITLE)
    expect(page.get_by_text("1, 2, 4, 8, 16, 32 or 64 heads", exact=False)).to_be_visible()
    # the rest of the page is still there
    expect(page.get_by_role("heading", name="How long it takes")).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart")).to_be_visible()


def test_a_series_is_measured_on_the_button(page: Page, site: Site):
    link = f"{URL}?against_pytorch_time_width=192&against_pytorch_time_tokens=16"
    open_whole_page(page, site, link, TITLE)
    expect(page.get_by_text("Press Measure", exact=False)).to_be_visible()
    click(page.get_by_role("button", name="Measure times"))
    done = page.get_by_text(re.compile(r"Measured at .* width 192, 16 tokens"))
    expect(done).to_be_visible()
    expect(page.get_by_text("Press Measure", exact=False)).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_contain_text("wrapper")
    moment = done.inner_text()
    with settings(page):
        set_slider(page, "Tokens T", 0, 1)
    expect(page).to_have_url(re.compile("against_pytorch_tokens=11"))
    settled(page)
    assert done.inner_text() == moment  # nothing was measured for that
