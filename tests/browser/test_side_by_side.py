"""Side by side in a browser: linked maps, the difference read by hovering, and the keyboard."""

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
    heatmap,
    last_number,
    open_page,
    press,
    read_by_keyboard,
    read_cell,
    readout,
    settings,
)
from tests.helpers.bundled_models import DECODER, ENCODER, attention
from tests.helpers.visitors import settled

TEXT = "The keeper didn't sleep"  # [CLS] the keeper didn ' t sleep [SEP]; The keeper didn 't sleep
LEFT, RIGHT = (
    "MiniLM, L3H1",
    "SmolLM2 135M, L3H1",
)
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


def test_a_click_on_either_side_chooses_the_pair(page: Page, site: Site):
    open_page(page, site, LINK, "Side by side")
    left, right, _ = maps(page)
    read_cell(left, 6, 2)
    click_where_the_pointer_is(page)
    expect(page.get_by_text(re.compile("Framed: .{2}sleep.* gives .*keeper"))).to_be_visible()
    settled(page)
    read_cell(right, 2, 1)  # didn -> keeper
    click_where_the_pointer_is(page)
    expect(page.get_by_text(re.compile("Framed: .{2}didn.* gives .*keeper"))).to_be_visible()


def test_pointing_at_a_cell_reads_its_partners_in_the_other_maps(page: Page, site: Site):
    open_page(page, site, LINK, "Side by side")
    left, right, difference = maps(page)
    first, tokens = attention(ENCODER, TEXT, 3, 1)
    second, others = attention(DECODER, TEXT, 3, 1)
    assert tokens.labels[3:6] == ("didn", "'", "t")
    assert others.labels[2:4] == ("didn", "'t")
    # one token on both sides: sleep -> keeper
    assert last_number(read_cell(left, 6, 2)) == pytest.approx(float(first[6, 2]), rel=1e-5)
    assert re.fullmatch(r"“sleep” → “keeper”: .*\d%", readout(right))
    assert exact(right) == pytest.approx(float(second[4, 1]), rel=1e-5)
    expected = float(first[6, 2] - second[4, 1])
    assert readout(difference).startswith("“sleep” → “keeper”: difference ")
    assert exact(difference) == pytest.approx(expected, abs=1e-6)
    # two keys of the encoder are one of the decoder, and their weights are summed
    assert last_number(read_cell(right, 4, 3)) == pytest.approx(float(second[4, 3]), rel=1e-5)
    assert readout(left).startswith("“sleep” → “'” … “t”: weights ")
    summed = float(first[6, 4] + first[6, 5])
    assert exact(left) == pytest.approx(summed, rel=1e-5)
    assert exact(difference) == pytest.approx(summed - float(second[4, 3]), abs=1e-6)
    # what the decoder may not see, and what has no partner
    assert "not comparable" in read_cell(difference, 1, 3)
    assert "masked" in readout(right)
    read_cell(left, 6, 0)
    assert readout(right) == readout(difference) == "The selected cell has no partner in this map."


def test_the_maps_are_linked_for_the_keyboard_too(page: Page, site: Site):
    open_page(page, site, LINK + "&side_by_side_view=words", "Side by side")
    left, right, difference = maps(page)
    canvas = difference.locator(".scroll canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile("5 queries|4 queries"))
    press(canvas, "ArrowDown", "End", "PageDown", "ArrowLeft")
    read_by_keyboard(difference, "“sleep” → “didn't”: difference ")
    read_by_keyboard(left, "“sleep” → “didn't”: ")
    read_by_keyboard(right, "“sleep” → “didn't”: ")
    assert exact(difference) == pytest.approx(exact(left) - exact(right), abs=1e-6)
    page.keyboard.press("Escape")
    for figure in (left, right, difference):
        expect(figure.locator(".readout")).to_have_attribute("data-value", "")


def test_pictures_are_saved(page: Page, site: Site):
    open_page(page, site, LINK, "Side by side")
    _, right, difference = maps(page)
    file = download(difference, "SVG")
    assert file.suggested_filename == "Left-minus-right-differences.svg"
    words = [element.text for element in ElementTree.parse(file.path()).iter() if element.text]
    says = "Each row is a query token, and each column is a key token."
    assert words[:4] == ["Left minus right", says, f"left: {LEFT}", f"right: {RIGHT}"]
    assert words.count("keeper") == 2  # as a row and as a column
    assert download(right, "PNG").path().read_bytes().startswith(b"\x89PNG")


def test_the_first_change_of_a_setting_moves_no_control(page: Page, site: Site):
    """Said on the edge of their button is how many were changed."""
    open_page(page, site, "/side-by-side", "Side by side")
    button = page.get_by_role("button", name="Settings")
    before = button.bounding_box()
    with settings(page) as opened:
        press(opened.get_by_role("radio", name="words"), "Space")
        expect(page.get_by_text("1 changed")).to_be_in_viewport(ratio=1)
        expect(page.get_by_text("Chosen pair: ")).to_be_visible()
        assert button.bounding_box() == before
