"""Test Similarity in a browser: another word, a section, a dimension by keyboard, the link."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_next_page,
    expect_parameter,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
)
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/similarity", "Similarity")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(3)
    expect(heatmap(page, "softmax(x·xᵀ)")).to_be_visible()
    products = page.get_by_test_id("stText").first
    expect(products).to_contain_text("tired")
    set_slider(page, "Word", 0, -3)  # tired -> it
    expect_parameter(page, "similarity_word", "8")
    of_it = re.compile("^“\u2068it\u2069” · ")
    expect(products).to_contain_text(of_it)

    press(page.get_by_role("radio", name="Which dim?"), "Space")
    press(page.get_by_role("radio", name="dim=-2"), "Space")
    figure = heatmap(page, "SmolLM2 135M, L13H8: softmax, dim=-2")
    press(figure.locator(".scroll canvas"), "Home")
    read_by_keyboard(figure, "“The” → “The”")
    expect_next_page(page, "Ladder")
    wait_until_settled(page)
    page.reload()
    expect(figure).to_be_visible()
    expect(products).to_contain_text(of_it)
