"""Test Masking and dropout in a browser: the triangle grows, zero leaks, another sample."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from pages.learn.masking import numbers
from tests.helpers.browser import click, open_whole_page, set_slider
from tests.helpers.panels import expect_cell, panel, read
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/masking", "Masking and dropout")
    nine = numbers.example("boy")
    expect(panel(page, "after")).to_be_visible()
    assert "= −∞" in read(page, "scores with the mask", 1, 3)
    below = page.get_by_role("heading", name="Two orders, one result")
    wait_until_settled(page)
    before = below.evaluate("element => element.offsetTop")
    click(page.get_by_role("button", name="Next token"))
    expect(panel(page, "scores with the mask")).to_contain_text("5 queries × 5 keys")
    expect(page).to_have_url(re.compile("masking_tokens=5"))
    wait_until_settled(page)
    assert below.evaluate("element => element.offsetTop") == before  # nothing below has moved

    leak = float(numbers.ways(nine).filled[0, 8])
    expect_cell(page, "weights", (0, 8), leak)
    set_slider(page, "Value of forbidden scores", 0, 8)  # 0 -> -inf
    expect(page).to_have_url(re.compile("masking_fill=-inf"))
    metric = page.get_by_test_id("stMetric").filter(has_text="all rows")
    expect(metric.get_by_test_id("stMetricValue")).to_have_text("0")

    click(page.get_by_role("button", name="Draw again"))
    expect(page).to_have_url(re.compile("masking_seed=124"))
    expect_cell(page, "after", (0, 1), float(numbers.draw(None, 0.5, 124).after[0, 1]))
