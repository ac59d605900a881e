"""The page "Inside the cache" as a visitor walks it: play, read, crop, fill it up."""

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    click,
    expect_parameter,
    heatmap,
    open_page,
    open_whole_page,
    press,
    read_by_keyboard,
    set_slider,
    settings,
    slider,
)
from tests.helpers.bundled_models import DECODER
from tests.helpers.visitors import settled

PROMPT = "Two men sat. Two"  # five tokens
ADDRESS = (
    f"/inside-the-cache?inside_the_cache_prompt={quote(PROMPT)}"
    "&inside_the_cache_tokens=6&inside_the_cache_step=5"
)


def test_play_read_crop_and_fill_with_the_keyboard(page: Page, site: Site):
    open_whole_page(page, site, ADDRESS, "Inside the cache")
    keys = page.locator("figure.heatmap").first
    expect(keys).to_contain_text("Keys, layer 5, KV head 1")
    canvas = keys.locator(".scroll canvas")
    expect(canvas).to_be_visible()
    expect(page.get_by_text("Step 5 (decode)")).to_be_visible()
    expect(page.get_by_text("Ran 19 passes")).to_be_visible()  # everything is there
    settled(page)
    box = canvas.bounding_box()

    press(canvas, "ArrowDown", "PageDown", "ArrowRight")
    said = read_by_keyboard(keys, "“9” → column 1: ")
    assert said == "“9” → column 1: not written yet"
    page.keyboard.press("ArrowUp")
    said = read_by_keyboard(keys, "“8 Wr ")
    assert re.fullmatch(r"“8 Wr .+” → column 1: key [+−]\d.*", said)

    page.get_by_role("button", name="Play").first.press("Enter")
    expect(page.get_by_text("Step 6 (decode)")).to_be_visible()
    expect(page.get_by_text("wrote row 9 (12,288 bytes in all layers)")).to_be_visible()
    expect(page).to_have_url(re.compile("inside_the_cache_step=6"))
    settled(page)
    assert canvas.bounding_box() == box  # nothing moves with a step

    settled(page)
    page.get_by_label("Continue with").fill(" grey men")
    page.keyboard.press("Enter")
    expect(page.get_by_text("4 rows were reused, so 2 new tokens")).to_be_visible()
    set_slider(page, "Tokens to keep", 0, -1)
    press(page.get_by_role("button", name="Crop cache", exact=True), "Enter")
    expect(heatmap(page, "After crop(3), remaining rows framed")).to_be_visible()
    expect(page.get_by_text("3 rows were reused, so 2 new tokens")).to_be_visible()
    expect_parameter(page, "inside_the_cache_crop", "3")

    set_slider(page, "Cache size (tokens)", 0, -1)
    press(page.get_by_role("button", name="Fill cache", exact=True), "Enter")
    expect_parameter(page, "inside_the_cache_room", "6")
    expect(page.get_by_text("holds 6 of at most 6 tokens: no room for 1 more")).to_be_visible()
    set_slider(page, "Step of the ring", 0, -5)
    set_slider(page, "Step of the ring", 0, 2)
    expect(page.get_by_text("went into row 6 mod 6 = 0 and replaced")).to_be_visible()
    ring = heatmap(page, "Ring of 6 rows")
    press(ring.locator(".scroll canvas"), "ArrowDown")
    read_by_keyboard(ring, "“0 W p6 ")


def test_sliders_of_runs_wait_for_their_buttons(page: Page, site: Site):
    open_whole_page(page, site, ADDRESS, "Inside the cache")
    expect(page.get_by_text("Ran 19 passes")).to_be_visible()
    set_slider(page, "Tokens to keep", 0, -2)
    set_slider(page, "Cache size (tokens)", 0, 1)
    # something outside of these rows changes: the page runs, and still shows what was run
    set_slider(page, "Layer", 0, -1)
    expect(heatmap(page, "Values, layer 4, KV head 1")).to_be_visible()
    settled(page)
    expect(heatmap(page, "After crop(4), remaining rows framed")).to_be_visible()
    expect(slider(page, "Tokens to keep")).to_have_attribute("aria-valuetext", "2")
    expect(heatmap(page, "Ring of 7 rows")).to_be_visible()
    expect(slider(page, "Cache size (tokens)")).to_have_attribute("aria-valuetext", "8")
    # one button sends its own row, and what was moved in the others stays moved
    press(page.get_by_role("button", name="Crop cache", exact=True), "Enter")
    expect(heatmap(page, "After crop(2), remaining rows framed")).to_be_visible()
    expect(page.get_by_text("Ran 19 passes")).to_be_visible()
    press(page.get_by_role("button", name="Fill cache", exact=True), "Enter")
    expect(heatmap(page, "Ring of 8 rows")).to_be_visible()
    with settings(page):
        set_slider(page, "New tokens", 0, -2)
        press(page.get_by_role("button", name="Run", exact=True), "Enter")
    expect(page.get_by_text("Ran 4 steps, and the text once without the cache")).to_be_visible()
    expect_parameter(page, "inside_the_cache_tokens", "4")


def test_a_run_is_stopped_and_taken_up_again(page: Page, site: Site):
    prompt = quote("A long story about a very small ship on a very large sea " * 4)
    open_page(
        page,
        site,
        f"/inside-the-cache?inside_the_cache_prompt={prompt}&inside_the_cache_tokens=40"
        f"&inside_the_cache_model={DECODER}",  # the first model is done before anybody could stop
        "Inside the cache",
    )
    page.locator(".st-key-inside_the_cache_run_stop button").click()
    expect(page.get_by_text("Stopped. Press Run to start again.")).to_be_visible()
    with settings(page):
        click(page.get_by_role("button", name="Run", exact=True))
    expect(page.get_by_text(re.compile(r"\d+ of 40 tokens"))).to_be_visible()
