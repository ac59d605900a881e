"""Test Timing in a browser: by keyboard alone, and a long run while another page is open."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import choose, click, heatmap, open_page, press, read_cell
from tests.helpers.bundled_models import DECODER, ENCODER

TINY = "/timing?timing_model=random-tiny&timing_tokens=16&timing_repeats=2"
WAYS = "&timing_ways=core,+cached&timing_ways=core,+uncached"
# Long enough to open another page meanwhile; 128 tokens would be rejected on a busy machine.
LONG = f"/timing?timing_model={DECODER}&timing_tokens=64&timing_repeats=5{WAYS}"


def test_measure_and_compare_by_keyboard(page: Page, site: Site):
    open_page(page, site, TINY, "Timing")
    # a stored run is visible immediately
    expect(page.get_by_role("combobox", name="Run", exact=True)).to_be_visible()
    # Tab reaches the control that the keyboard then presses
    press(page.get_by_role("button", name="Settings"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.st-key-timing_start') !== null")
    page.keyboard.press("Enter")
    expect(
        page.get_by_text("random-tiny, 5 prompt tokens, 16 new, repeats: 2; cpu")
    ).to_be_visible()
    comparison = page.get_by_role("combobox", name="Compare with")
    choose(comparison)
    expect(comparison).to_have_value(re.compile("^stored: GPT-2 novels, "))
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()


def test_other_pages_work_during_a_run(page: Page, site: Site, other: Page):
    open_page(page, site, LONG, "Timing")
    click(page.locator(".st-key-timing_start button"))
    expect(page.get_by_text("about", exact=False).filter(has_text="Measuring:")).to_be_visible()
    link = f"/side-by-side?side_by_side_text=Read beside a run&side_by_side_a_model={ENCODER}"
    link += "&side_by_side_a_layer=3&side_by_side_a_head=1"
    open_page(other, site, link, "Side by side")
    figure = heatmap(other, "L3H1").first
    expect(figure.locator(".scroll canvas")).to_be_visible()
    assert "“read” → “beside”: " in read_cell(figure, 1, 2)
    # out of 640 steps; both versions need eight to save a result
    expect(page.get_by_text(re.compile(r"Measuring: (?:[5-9]|[1-9]\d)%"))).to_be_visible()
    page.locator(".st-key-timing_stop button").click()
    expect(page.get_by_text("Stopped. The results cover")).to_be_visible()
    expect(page.locator(".st-key-timing_stop button")).to_be_disabled()
    # the measurements so far are visible
    expect(page.get_by_text("stopped early; cpu", exact=False)).to_be_visible()
