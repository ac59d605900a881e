"""Timing in a browser: by the keyboard alone, and a long run beside another page."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import click, heatmap, open_page, press, read_cell
from tests.helpers.bundled_models import DECODER

TINY = "/timing?timing_model=random-tiny&timing_tokens=16&timing_repeats=2"
# Long enough to open another page beside it; on a busy machine 128 tokens are refused as too long.
LONG = f"/timing?timing_model={DECODER}&timing_tokens=64&timing_repeats=5"


def test_measured_and_compared_by_keyboard(page: Page, site: Site):
    open_page(page, site, TINY, "Timing")
    # the tiny shape is measured at once; Tab reaches what the keyboard then presses
    expect(page.get_by_text("Done. Nothing is running.")).to_be_visible()
    expect(page.get_by_role("combobox", name="Run", exact=True)).to_be_visible()
    press(page.get_by_label("Ways to generate", exact=False).first)
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.st-key-timing_start') !== null"):
            break
    page.keyboard.press("Enter")
    expect(
        page.get_by_text("random-tiny, 5 prompt tokens, 16 new, repeats: 2; cpu")
    ).to_be_visible()
    beside = page.get_by_role("combobox", name="Beside it")
    press(beside, "ArrowDown", "Enter")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
    expect(beside).to_have_value(re.compile("^#1 .* random-tiny"))
    expect(page.get_by_text("Without ÷ with, the core")).to_be_visible()


def test_other_pages_work_beside_a_run_that_is_then_stopped(
    page: Page, site: Site, another_visitor: Callable[[], Page]
):
    open_page(page, site, LONG, "Timing")
    click(page.locator(".st-key-timing_start button"))
    expect(page.get_by_text("about", exact=False).filter(has_text="Measuring:")).to_be_visible()
    other = another_visitor()
    open_page(other, site, "/side-by-side?side_by_side_text=Read beside a run", "Side by side")
    figure = heatmap(other, "L3H1").first
    expect(figure.locator(".scroll canvas")).to_be_visible()
    assert "query 1 “read” → key 2 “beside”" in read_cell(figure, 1, 2)
    # of 640 steps so many that both ways have the eight without which nothing is kept
    expect(page.get_by_text(re.compile(r"Measuring: (?:[5-9]|[1-9]\d)%"))).to_be_visible()
    page.locator(".st-key-timing_stop button").click()
    expect(page.get_by_text("Stopped. Whole repeats are kept")).to_be_visible()
    expect(page.locator(".st-key-timing_stop button")).to_be_disabled()
    # what was measured until then is shown
    expect(page.get_by_text("stopped early; cpu", exact=False)).to_be_visible()
