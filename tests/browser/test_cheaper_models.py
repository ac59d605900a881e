"""Test Cheaper models in a browser: experts by keyboard, another section, a routing rule."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    click,
    expect_next_page,
    expect_parameter,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
)


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/cheaper-models", "Cheaper models")
    picture = heatmap(page, "contributions of 16 experts in layer 2")
    press(picture.locator(".scroll canvas"), *["ArrowDown"] * 2, "ArrowRight")
    read_by_keyboard(picture, "“animal” → “e1”: not among the largest")
    set_slider(page, "Experts per token", 0, 1)
    expect_parameter(page, "cheaper_models_kept", "5")
    expect(page.get_by_text("5 of 16 experts")).to_be_visible()

    press(page.get_by_role("radio", name="Rewards"), "Space")
    expect(page.get_by_text("Sampled 6 continuations at temperature 1.")).to_be_visible()
    click(page.get_by_role("radio", name="a word of your own"))
    page.get_by_label("Required word", exact=True).fill("<b>zebra</b>")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^All rewards are equal"))).to_be_visible()
    expect_parameter(page, "cheaper_models_word", "<b>zebra</b>")
    expect_next_page(page, "Heads")
