"""Test Position in a browser: two word orders, the rotary sliders by keyboard, the URL."""

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
from tests.helpers.panels import read

SCORE = re.compile(r"The score is −?[\d.]+ with")


def score(page: Page, position: int) -> float:
    """Return the score on the page once the key is at this position."""
    paragraph = page.get_by_text(SCORE)
    expect(paragraph).to_contain_text(f"with the key at position {position:,} ")
    return parse_number(re.findall(r"−?[\d.]+", paragraph.text_content() or "")[0])


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/position", "Position")
    # “dog” is the second token, then the fourth; without positions its vector stays the same
    original, moved = (
        parse_number(read(page, name, 0, column).partition("= ")[2].split(" ")[0])
        for name, column in (("original order", 1), ("new order", 3))
    )
    assert original == pytest.approx(moved, abs=1e-6)
    table = heatmap(page, "position vectors")
    assert last_number(read_cell(table, 3, 0)) == pytest.approx(0.14112, abs=1e-5)  # sin 3

    press(page.get_by_role("radio", name="Rotary", exact=True), "Space")
    before = score(page, 20)
    set_slider(page, "Position of the key", 0, 3)  # 20 -> 200
    expect_parameter(page, "position_place", "200")
    assert score(page, 200) == pytest.approx(before, abs=2e-3)
    set_slider(page, "Distance", 0, 3)  # 1 -> 4
    expect_parameter(page, "position_distance", "4")
    expect(page.get_by_text(SCORE)).to_contain_text("at 204.")
    assert abs(score(page, 200) - before) > 1
    expect_next_page(page, "Attention without the matrix")
