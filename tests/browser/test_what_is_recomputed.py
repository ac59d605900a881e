"""Test What is recomputed by keyboard alone: step, read, play, run, save; also on a phone."""

import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_parameter,
    open_whole_page,
    press,
    read_by_keyboard,
    set_slider,
    settings,
    unfold,
)
from tests.helpers.bundled_models import FIRST_GPT2, bundled_model
from tests.helpers.visitors import wait_until_settled

PROMPT = "Two small cats"
HEIGHT = "element => element.offsetHeight"


def test_main_path(page: Page, site: Site):
    link = (
        f"/what-is-recomputed?what_is_recomputed_prompt={quote(PROMPT)}&what_is_recomputed_tokens=4"
    )
    open_whole_page(page, site, link, "What is recomputed")
    picture = page.locator(".tensors").first

    def panel(name: str) -> Locator:
        called = page.get_by_text(name, exact=True)
        return picture.locator("figure.panel").filter(has=called)

    # number of tokens in step 3
    n = len(bundled_model(FIRST_GPT2).tokenizer.encode(PROMPT).ids) + 2
    expect(page.get_by_text(f"Step 3 of 4: without a cache it runs {n} tokens")).to_be_visible()
    expect(page.get_by_text("Cached values would be wrong there", exact=False)).to_be_visible()
    set_slider(page, "Layer", 0, -1)  # 5 -> 4
    set_slider(page, "First column drawn", 0, 2)
    set_slider(page, "Step", 0, -1)
    expect(page.get_by_text(f"Step 2 of 4: without a cache it runs {n - 1} tokens")).to_be_visible()
    expect(page).to_have_url(re.compile("what_is_recomputed_step=2"))
    wait_until_settled(page)
    height = picture.evaluate(HEIGHT)
    # the previous step had row 1 but not the last row; rows that don't exist yet can't be read
    press(panel("keys").locator("canvas"), "ArrowDown", "ArrowDown")
    message = read_by_keyboard(picture, "keys[1, 2] = ")
    assert message.endswith("already computed one step ago")
    for _ in range(n + 2):
        page.keyboard.press("ArrowDown")
    last = read_by_keyboard(picture, f"keys[{n - 2}, 2] = ")
    assert "one step ago" not in last

    buttons = page.locator("[class*=_stepper] button")
    places = [buttons.filter(has_text=name).bounding_box() for name in ("Previous", "Next", "Play")]
    press(page.get_by_role("button", name="Play"), "Enter")
    for name, place in zip(("Previous", "Next", "Pause"), places, strict=True):
        box = buttons.filter(has_text=name).bounding_box()
        assert box is not None
        assert place is not None
        assert (box["x"], box["y"]) == (place["x"], place["y"])  # "Pause" is no wider
    expect(page.get_by_text("Step 4 of 4: ")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # playback stops at the end
    wait_until_settled(page)
    # tokens that aren't generated yet reserve their space
    assert picture.evaluate(HEIGHT) == height

    unfold(page, "Download or share")
    with page.expect_download() as download:
        press(page.get_by_role("button", name="This head's matrices (NPZ)"), "Enter")
    assert download.value.suggested_filename.endswith("step4_layer4_head0.npz")

    # on a small phone, the score matrix keeps its numbers and scrolls, but the page doesn't
    page.set_viewport_size({"width": 320, "height": 640})
    scores = panel("scores")
    numbered = re.compile(r"^(2[6-9]|[3-9]\d)")  # cells without numbers are at most 22 pixels
    expect(scores.locator("canvas")).to_have_attribute("data-cell-width", numbered)
    assert scores.locator(".scroll").evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    with settings(page):
        set_slider(page, "New tokens", 0, -1)
        press(page.get_by_role("button", name="Run", exact=True), "Enter")
    expect(page.get_by_text("Step 3 of 3: ")).to_be_visible()
    expect_parameter(page, "what_is_recomputed_tokens", "3")
