"""Test Why several heads in a browser: a row by keyboard, heads, sections, the link."""

import re

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose,
    click,
    exact,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
    type_text,
)
from tests.helpers.bundled_models import ENCODER
from tests.helpers.visitors import wait_until_settled

TEXT = "Seven small ships sailed past"


def test_main_path(page: Page, site: Site):
    path = f"/why-several-heads?why_several_heads_model={ENCODER}"
    open_page(page, site, path, "Why several heads")
    type_text(page, "Text", TEXT)
    # the first key press shows the framed row
    average = heatmap(page, "average of both heads")
    press(average.locator(".scroll canvas"), *["ArrowUp"] * 3, "ArrowRight")
    # the cell under the pointer is also framed and read in both heads' maps
    read_by_keyboard(average, "“ships” → “seven”")
    heads = [heatmap(page, "L3H7"), heatmap(page, "L3H11")]
    for figure in heads:
        read_by_keyboard(figure, "“ships” → “seven”")
    assert exact(average) == pytest.approx(sum(map(exact, heads)) / 2, abs=1e-5)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("why_several_heads_token=3"))
    expect(page.get_by_text(re.compile("ships.* attends most to"))).to_be_visible()

    set_slider(page, "Second head", 0, -1)  # 11 -> 10
    expect(heatmap(page, "L3H10")).to_be_visible()
    click(page.get_by_role("radio", name="Left with one head"))
    choose(page.get_by_role("combobox", name="Compare heads in layer"), "2")
    compared = page.get_by_text(re.compile("left in layer 2, the final vectors change"))
    expect(compared).to_be_visible()
    wait_until_settled(page)
    page.reload()
    expect(heatmap(page, "L3H10")).to_be_visible()
    expect(compared).to_be_visible()
    expect(page.get_by_text(re.compile("ships.* attends most to"))).to_be_visible()
