"""Test Who sets the weights in a browser: another learning rate, a section, the next page."""

import re

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_next_page,
    expect_parameter,
    heatmap,
    last_number,
    open_page,
    parse_number,
    press,
    read_cell,
    set_slider,
)
from tests.helpers.bundled_models import FIRST_GPT2, weights
from ui.widgets import controls


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/who-sets-the-weights", "Who sets the weights")
    notice = page.get_by_text(re.compile("^The loss (fell|rose) from"))
    expect(notice).to_contain_text("fell")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(2)
    before = weights(FIRST_GPT2, controls.ANIMAL, 4, 6)[8, 1]  # “it” attends to “animal”
    read = [read_cell(heatmap(page, f"L4H6 {when}"), 8, 1) for when in ("before", "after")]
    assert last_number(read[0]) == pytest.approx(before, abs=1e-4)
    assert last_number(read[1]) != last_number(read[0])

    # a learning rate 1,000 times as large: nothing runs until the button is pressed
    set_slider(page, "Learning rate", 0, 6)
    expect(notice).to_contain_text("fell")
    press(page.get_by_role("button", name="Train"), "Enter")
    expect(notice).to_contain_text("rose")
    expect_parameter(page, "who_sets_the_weights_rate", "1.0")

    press(page.get_by_role("radio", name="From the loss to one head"), "Space")
    paragraph = page.get_by_text("the last two factors, multiplied here")
    product, result = re.findall(r"\d\.\d+", paragraph.text_content() or "")
    assert parse_number(product) == pytest.approx(parse_number(result), rel=1e-3)
    expect_next_page(page, "Watch heads form")
