"""Test Inside the cache in a browser by keyboard: read, play, continue, crop, fill."""

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_parameter,
    heatmap,
    open_whole_page,
    press,
    read_by_keyboard,
    set_slider,
)
from tests.helpers.visitors import wait_until_settled

ADDRESS = (
    f"/inside-the-cache?inside_the_cache_prompt={quote('Two men sat. Two')}"  # five tokens
    "&inside_the_cache_tokens=6&inside_the_cache_step=5"
)


def test_read_play_crop_and_fill_with_the_keyboard(page: Page, site: Site):
    open_whole_page(page, site, ADDRESS, "Inside the cache")
    keys = page.locator("figure.heatmap").first
    canvas = keys.locator(".scroll canvas")
    expect(page.get_by_text("Ran 19 passes")).to_be_visible()  # the page is complete
    wait_until_settled(page)
    box = canvas.bounding_box()
    press(canvas, "ArrowDown", "PageDown", "ArrowRight")
    message = read_by_keyboard(keys, "“9” → column 1: ")
    assert message == "“9” → column 1: not written yet"
    page.keyboard.press("ArrowUp")
    message = read_by_keyboard(keys, "“8 Wr ")
    assert re.fullmatch(r"“8 Wr .+” → column 1: key [+−]\d.*", message)

    page.get_by_role("button", name="Play").first.press("Enter")
    expect(page.get_by_text("Step 6 (decode)")).to_be_visible()
    expect(page).to_have_url(re.compile("inside_the_cache_step=6"))
    wait_until_settled(page)
    assert canvas.bounding_box() == box  # stepping doesn't move the layout

    page.get_by_label("Continue with").fill(" grey men")
    page.keyboard.press("Enter")
    expect(page.get_by_text("4 rows were reused, so 2 new tokens")).to_be_visible()
    # in the other sections, a slider takes effect when its button is pressed and keeps its position
    # until then
    set_slider(page, "Cache size (tokens)", 0, -1)
    set_slider(page, "Tokens to keep", 0, -1)
    press(page.get_by_role("button", name="Crop cache", exact=True), "Enter")
    expect(heatmap(page, "After crop(3), remaining rows framed")).to_be_visible()
    expect_parameter(page, "inside_the_cache_crop", "3")
    press(page.get_by_role("button", name="Fill cache", exact=True), "Enter")
    expect_parameter(page, "inside_the_cache_room", "6")
    expect(page.get_by_text("6 of at most 6 tokens")).to_be_visible()
    ring = heatmap(page, "Ring of 6 rows")
    set_slider(page, "Step of the ring", 0, -5)
    set_slider(page, "Step of the ring", 0, 2)
    expect(page.get_by_text("went into row 6 mod 6 = 0 and replaced")).to_be_visible()
    press(ring.locator(".scroll canvas"), "ArrowDown")
    read_by_keyboard(ring, "“0 W p6 ")
