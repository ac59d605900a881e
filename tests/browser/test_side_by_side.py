"""Test Side by side in a browser: maps linked by pointer and keyboard, a saved picture."""

import re
import urllib.parse
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    click_where_the_pointer_is,
    download,
    exact,
    expect_parameter,
    heatmap,
    last_number,
    open_page,
    press,
    read_by_keyboard,
    read_cell,
    readout,
    set_slider,
    settings,
    type_text,
)
from tests.helpers.bundled_models import DECODER, ENCODER, attention
from tests.helpers.visitors import wait_until_settled

TEXT = "The keeper didn't sleep"  # [CLS] the keeper didn ' t sleep [SEP]; The keeper didn 't sleep
LEFT, RIGHT = "MiniLM, L3H1", "SmolLM2 135M, L3H1"
LINK = (
    f"/side-by-side?side_by_side_text={urllib.parse.quote(TEXT)}"
    f"&side_by_side_a_model={ENCODER}&side_by_side_b_model={DECODER}"
    "&side_by_side_a_layer=3&side_by_side_a_head=1&side_by_side_b_layer=3&side_by_side_b_head=1"
)


def maps(page: Page) -> tuple[Locator, Locator, Locator]:
    left, right, difference = (heatmap(page, name) for name in (LEFT, RIGHT, "Left minus right"))
    for figure in (left, right, difference):
        expect(figure).to_be_visible()
    return left, right, difference


def test_maps_are_linked_by_pointer(page: Page, site: Site):
    open_page(page, site, LINK, "Side by side")
    left, right, difference = maps(page)
    first, _ = attention(ENCODER, TEXT, 3, 1)
    second, _ = attention(DECODER, TEXT, 3, 1)
    # both models have one token here: sleep -> keeper
    assert last_number(read_cell(left, 6, 2)) == pytest.approx(float(first[6, 2]), rel=1e-5)
    assert re.fullmatch(r"“sleep” → “keeper”: .*\d%", readout(right))
    assert exact(right) == pytest.approx(float(second[4, 1]), rel=1e-5)
    assert exact(difference) == pytest.approx(float(first[6, 2] - second[4, 1]), abs=1e-6)
    # two keys of the encoder match one of the decoder, and their weights are summed
    assert last_number(read_cell(right, 4, 3)) == pytest.approx(float(second[4, 3]), rel=1e-5)
    assert readout(left).startswith("“sleep” → “'” … “t”: weights ")
    summed = float(first[6, 4] + first[6, 5])
    assert exact(left) == pytest.approx(summed, rel=1e-5)
    # a pair masked in the decoder, and a token without a match
    assert "not comparable" in read_cell(difference, 1, 3)
    assert "masked" in readout(right)
    read_cell(left, 6, 0)
    assert readout(right) == readout(difference) == "The selected cell has no partner in this map."

    # a click on either side selects the pair
    read_cell(left, 6, 2)
    click_where_the_pointer_is(page)
    expect(page.get_by_text(re.compile("Framed: .{2}sleep.* gives .*keeper"))).to_be_visible()
    wait_until_settled(page)
    read_cell(right, 2, 1)  # didn -> keeper
    click_where_the_pointer_is(page)
    expect(page.get_by_text(re.compile("Framed: .{2}didn.* gives .*keeper"))).to_be_visible()

    words = ElementTree.parse(download(difference, "SVG").path()).iter()
    # once as a row and once as a column
    assert [element.text for element in words].count("keeper") == 2


def test_maps_are_linked_by_keyboard_and_text_is_in_the_link(page: Page, site: Site):
    open_page(page, site, LINK, "Side by side")
    button = page.get_by_role("button", name="Settings")
    before = button.bounding_box()
    with settings(page) as panel:
        press(panel.get_by_role("radio", name="words"), "Space")
        expect(page.get_by_text("1 changed")).to_be_in_viewport(ratio=1)
        expect_parameter(page, "side_by_side_view", "words")
        wait_until_settled(page)
        # the badge with the number of changed settings doesn't move any control
        assert button.bounding_box() == before
    left, right, difference = maps(page)
    canvas = difference.locator(".scroll canvas")
    press(canvas, "ArrowDown", "End", "PageDown", "ArrowLeft")
    read_by_keyboard(difference, "“sleep” → “didn't”: difference ")
    read_by_keyboard(left, "“sleep” → “didn't”: ")
    read_by_keyboard(right, "“sleep” → “didn't”: ")
    assert exact(difference) == pytest.approx(exact(left) - exact(right), abs=1e-6)
    page.keyboard.press("Escape")
    for figure in (left, right, difference):
        expect(figure.locator(".readout")).to_have_attribute("data-value", "")

    type_text(page, "Sentence", "Seven small ships")
    set_slider(page, "Layer", 1, 4)
    title = "SmolLM2 135M, L7H1"
    expect(heatmap(page, title)).to_be_visible()
    expect_parameter(page, "side_by_side_b_layer", "7")
    wait_until_settled(page)
    page.reload()
    expect(heatmap(page, title)).to_be_visible()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("Seven small ships")


def test_reading_by_keyboard_keeps_the_cell_in_view(page: Page, site: Site):
    page.set_viewport_size({"width": 390, "height": 500})
    text = urllib.parse.quote("word " * 100)
    open_page(page, site, f"/side-by-side?side_by_side_text={text}", "Side by side")
    figure = heatmap(page, "BERT novels")
    press(figure.locator(".scroll canvas"))
    for key in ("ArrowDown", "End", "PageDown", "Home", "PageUp"):
        page.keyboard.press(key)
        expect(figure.locator(".cursor")).to_be_in_viewport()
        expect(figure.locator(".readout")).to_be_in_viewport()
