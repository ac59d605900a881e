"""Masking and dropout in a browser: the triangle grows, zero leaks, another draw."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.learn.masking import numbers
from tests.helpers.browser import click, open_whole_page, set_slider
from tests.helpers.panels import expect_cell, panel, read
from tests.helpers.visitors import settled


def test_the_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/masking", "Masking and dropout")
    nine = numbers.example("boy")
    assert "= −∞" in read(page, "scores with the mask", 1, 3)
    click(page.get_by_role("button", name="Next token"))
    expect(panel(page, "scores with the mask")).to_contain_text("5 queries × 5 keys")
    expect(page).to_have_url(re.compile("masking_tokens=5"))
    expect(page.get_by_text("may see positions 0 to 4")).to_be_visible()

    leak = float(numbers.ways(nine).filled[0, 8])
    expect_cell(page, "weights", (0, 8), leak)
    set_slider(page, "Value of forbidden scores", 0, 8)  # 0 -> -inf
    expect(page).to_have_url(re.compile("masking_fill=-inf"))
    metric = page.get_by_test_id("stMetric").filter(has_text="all rows")
    expect(metric.get_by_test_id("stMetricValue")).to_have_text("0")

    click(page.get_by_role("button", name="Draw again"))
    expect(page).to_have_url(re.compile("masking_seed=124"))
    expected = float(numbers.draw(None, 0.5, 124).after[0, 1])
    expect_cell(page, "after", (0, 1), expected)
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()


def test_adding_a_token_moves_nothing_below(page: Page, site: Site):
    open_whole_page(page, site, "/masking?masking_tokens=2", "Masking and dropout")
    expect(page.get_by_text("Predict, then look")).to_be_visible()
    expect(panel(page, "after")).to_be_visible()
    below = page.get_by_role("heading", name="Two orders, one result")
    settled(page)
    before = below.evaluate("element => element.getBoundingClientRect().top")
    click(page.get_by_role("button", name="Next token"))
    expect(panel(page, "scores with the mask")).to_contain_text("3 queries × 3 keys")
    settled(page)
    assert below.evaluate("element => element.getBoundingClientRect().top") == before
