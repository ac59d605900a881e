"""Test Heads in a browser: read, open, sort and save all heads, also without a mouse."""

import re
import urllib.parse

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    PROJECTOR,
    SENTENCE,
    click,
    click_where_the_pointer_is,
    download,
    heatmap,
    last_number,
    open_page,
    press,
    read_by_keyboard,
    read_cell,
    settings,
    type_text,
)
from tests.helpers.bundled_models import ENCODER, attention, weights
from tests.helpers.mosaic import cell_read, painted, read_head, tiles, value_read
from tests.helpers.visitors import wait_until_settled

N_TOKENS = 10


def visit(page: Page, site: Site, **query: str) -> Locator:
    """Open the page with these parameters and return the mosaic once it's painted."""
    query = {"heads_text": SENTENCE, "heads_model": ENCODER, **query}
    open_page(page, site, f"/heads?{urllib.parse.urlencode(query)}", "Heads")
    return painted(page)


def test_click_opens_a_head_and_then_a_pair(page: Page, site: Site):
    figure = visit(page, site, heads_hide="[CLS]")
    read_head(figure, 4 * 12 + 7, 3, 3, N_TOKENS, "L4H7")
    click_where_the_pointer_is(page)
    head_map = heatmap(page, "L4H7: weights")
    expect(head_map).to_be_visible()
    expect(page).to_have_url(re.compile("heads_head=7"))
    expected, _ = attention(ENCODER, SENTENCE, 4, 7)
    assert last_number(read_cell(head_map, 5, 2)) == pytest.approx(float(expected[5, 2]), rel=1e-5)
    # clicking a cell selects its pair below
    click(head_map.locator(".scroll canvas"))
    expect(page).to_have_url(re.compile("heads_query="))
    wait_until_settled(page)
    query = re.search(r"heads_query=(\d+)", page.url)
    assert query
    page.reload()
    expect(head_map).to_be_visible()
    expect(page.get_by_text(re.compile(f"^Query {query[1]} “"))).to_be_visible()

    figure = painted(page)
    assert download(figure, "PNG").path().read_bytes().startswith(b"\x89PNG")
    assert download(figure, "SVG").path().read_text(encoding="utf-8").count("<image") == 72
    text = "word " * 254  # a head's tile has fewer pixels than cells
    type_text(page, "Sentence", text)
    figure = painted(page)
    read_head(figure, 13, 200, 31, 256, "L1H1")
    displayed, off = value_read(figure)
    assert abs(displayed - float(attention(ENCODER, text, 1, 1)[0][cell_read(figure)])) <= off


def test_clicked_head_opens_in_a_bottom_sheet_on_a_phone(phone: Page, site: Site):
    figure = visit(phone, site)
    close = phone.get_by_role("button", name="Close")
    expect(close).not_to_be_visible()
    read_head(figure, 2 * 12 + 3, 3, 3, N_TOKENS, "L2H3")
    click_where_the_pointer_is(phone)
    head_map = heatmap(phone, "L2H3: weights")
    expect(head_map).to_be_in_viewport(ratio=0.6)
    # the sheet covers the page, which hasn't scrolled: all heads are still there
    expect(figure).to_be_in_viewport()
    click(close)
    expect(close).not_to_be_visible()
    expect(head_map).not_to_be_in_viewport()
    # in a wide window the head is next to the mosaic, so there's nothing to close
    read_head(figure, 2 * 12 + 3, 3, 3, N_TOKENS, "L2H3")
    click_where_the_pointer_is(phone)
    expect(close).to_be_visible()
    phone.set_viewport_size(PROJECTOR)
    expect(close).not_to_be_visible()
    expect(head_map).to_be_visible()


def test_without_a_mouse(page: Page, site: Site):
    figure = visit(page, site, heads_layer="2", heads_head="5")
    # the first key press shows which cell is read first
    press(figure.locator(".scroll canvas"), "ArrowRight")
    read_by_keyboard(figure, "L2H5: “")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    read_by_keyboard(figure, "L3H6: “")
    expected, tokens = attention(ENCODER, SENTENCE, 3, 6)
    row, column = divmod(int(expected.argmax()), len(tokens.ids))
    assert cell_read(figure) == (row, column)  # opening a head selects its largest weight
    page.keyboard.press("Shift+ArrowUp" if row else "Shift+ArrowDown")
    row += -1 if row else 1
    expect(figure.locator(".readout")).to_have_attribute("data-cell", f"{row} {column}")
    displayed, off = value_read(figure)
    assert abs(displayed - float(expected[row, column])) <= off
    page.keyboard.press("Enter")
    head_map = heatmap(page, "L3H6: weights")
    expect(head_map).to_be_visible()
    # the first key may only scroll or show the marked cell, but the corners are always reachable
    press(head_map.locator(".scroll canvas"), "Home", "PageUp", "Home")
    read_by_keyboard(head_map, "“[CLS]” → “[CLS]”")
    for keys, cell in (
        ("ArrowRight ArrowDown", "“seven” → “seven”"),
        ("PageDown End", "“[SEP]” → “[SEP]”"),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        read_by_keyboard(head_map, cell)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"heads_key={len(tokens.ids) - 1}"))


def test_sort_order_and_a_text_that_is_too_long(page: Page, site: Site):
    figure = visit(page, site, heads_count="6")
    assert [number for number, *_ in tiles(figure)] == list(range(72))
    with settings(page):
        click(page.get_by_test_id("stSelectbox").filter(has_text="Order").locator("input"))
        page.get_by_role("option", name="Previous token").click()
    page.wait_for_function(
        "canvas => JSON.parse(canvas.dataset.heads).length === 6",
        arg=figure.locator(".scroll canvas").element_handle(),
    )
    wait_until_settled(page)
    assert [number for number, *_ in tiles(figure)] == by_previous_token_weight()[:6]

    # text that exceeds the limit isn't dropped silently
    box = page.get_by_label("Sentence", exact=True)
    press(box, "Control+a")
    page.keyboard.insert_text("word " * 1100)
    expect(box).to_have_value(SENTENCE)
    message = "box => box.validationMessage.includes('5,500 characters')"
    page.wait_for_function(message, arg=box.element_handle())
    press(box, "End", "s")
    expect(box).to_have_value(f"{SENTENCE}s")
    expect(box).to_have_js_property("validationMessage", "")


def by_previous_token_weight() -> list[int]:
    """Sort the heads by their mean weight on the previous token, computed independently."""
    maps = [weights(ENCODER, SENTENCE, *divmod(number, 12)) for number in range(72)]
    means = [-weights_of_a_head.diagonal(-1).mean() for weights_of_a_head in maps]
    return [int(number) for number in np.argsort(means, kind="stable")]
