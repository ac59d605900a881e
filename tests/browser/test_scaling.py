"""Test Scaling in a browser: scores, d_k, a head without its scale, the link."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose_example,
    click,
    heatmap,
    open_whole_page,
    read_cell,
    set_slider,
    settings,
)
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/scaling?scaling_layer=3&scaling_head=1", "Scaling")
    expect(page.get_by_test_id("stTable").first).to_contain_text("0.5741")
    choose_example(page, "20, 21.5, 26")
    scores = page.get_by_label("Scores (logits)")
    expect(scores).to_have_value("20 21.5 26")
    expect(page.get_by_test_id("stTable").first).to_contain_text("0.9866")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(3)
    set_slider(page, "d_k", 0, 5)  # 64 -> 1024
    expect(page).to_have_url(re.compile("scaling_d_k=1024"))

    before = read_cell(heatmap(page, "q·k × 1"), 8, 3)
    with settings(page):
        click(page.get_by_text("times a factor"))
    set_slider(page, "Factor", 0, -4)  # 4 -> 1/4
    figure = heatmap(page, f"q·k × {32**-0.5 / 4:.4g}")
    assert read_cell(figure, 8, 3) != before
    expect(page).to_have_url(re.compile("scaling_factor=1%2F4"))
    wait_until_settled(page)
    page.reload()
    expect(figure).to_be_visible()
    expect(scores).to_have_value("20 21.5 26")

    # invalid scores are rejected and stay in the text field
    wait_until_settled(page)
    scores.fill("20 <b>two</b>")
    scores.press("Enter")
    expect(page.get_by_text("is not a number")).to_be_visible()
    expect(scores).to_have_value("20 <b>two</b>")
