"""The page "What is recomputed" in a browser, by keyboard alone: step, read, play, count, save."""

import re
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import FloatRect, Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    PROJECTOR,
    expect_parameter,
    open_page,
    open_whole_page,
    press,
    read_by_keyboard,
    set_slider,
    settings,
    slider,
    unfold,
    written,
)
from tests.helpers.bundled_models import FIRST_GPT2, bundled
from tests.helpers.visitors import settled

PROMPT = "Two small cats"
HEIGHT = "element => element.offsetHeight"


def picture(page: Page, which: int) -> Locator:
    return page.locator(".tensors").nth(which)


def box_of(page: Page, name: str) -> FloatRect:
    box = page.locator("[class*=_stepper] button").filter(has_text=name).bounding_box()
    assert box is not None
    return box


def panel(page: Page, name: str) -> Locator:
    called = page.get_by_text(name, exact=True)
    return picture(page, 0).locator("figure.panel").filter(has=called)


def test_three_matrices_stand_side_by_side_and_the_buttons_on_a_line(page: Page, site: Site):
    open_page(page, site, "/what-is-recomputed", "What is recomputed")
    settled(page)
    tops = {panel(page, name).bounding_box()["y"] for name in ("queries", "keys", "values")}
    assert len(tops) == 1  # the sentence below a matrix is no wider than it
    play, stop = (page.get_by_role("button", name=name) for name in ("Play", "Stop"))
    ends = [box["y"] + box["height"] for box in (play.bounding_box(), stop.bounding_box())]
    assert ends[0] == pytest.approx(ends[1], abs=1)  # a pixel: places are rounded


def test_the_buttons_of_the_step_stay_in_one_row_and_in_their_places(own_page: Page, site: Site):
    own_page.set_viewport_size(PROJECTOR)
    open_page(own_page, site, "/what-is-recomputed?what_is_recomputed_step=1", "What is recomputed")
    settled(own_page)
    before = [box_of(own_page, name) for name in ("Previous", "Next", "Play")]
    assert len({box["y"] for box in before}) == 1
    own_page.get_by_role("button", name="Play").click()
    after = [box_of(own_page, name) for name in ("Previous", "Next", "Pause")]
    places = [[box[side] for side in ("x", "y")] for box in before]
    assert [[box[side] for side in ("x", "y")] for box in after] == places


def test_a_step_by_keyboard_alone(page: Page, site: Site):
    link = (
        f"/what-is-recomputed?what_is_recomputed_prompt={quote(PROMPT)}&what_is_recomputed_tokens=4"
    )
    open_whole_page(page, site, link, "What is recomputed")
    ids = list(bundled(FIRST_GPT2).tokenizer.encode(PROMPT).ids)
    n = len(ids) + 2  # tokens of step 3
    expect(page.get_by_text(f"Step 3 of 4: without a cache it runs {n} tokens")).to_be_visible()
    expect(page.get_by_text("Cached values would be wrong there", exact=False)).to_be_visible()
    set_slider(page, "Layer", 0, -1)  # 5 -> 4
    set_slider(page, "First column drawn", 0, 2)
    set_slider(page, "Step", 0, -1)
    expect(page.get_by_text(f"Step 2 of 4: without a cache it runs {n - 1} tokens")).to_be_visible()
    expect(page).to_have_url(re.compile("what_is_recomputed_step=2"))
    canvas = panel(page, "keys").locator("canvas")
    expect(panel(page, "keys").locator(".shape")).to_contain_text(f"{n - 1} tokens × 32 columns")
    settled(page)
    height = picture(page, 0).evaluate(HEIGHT)
    # row 1 was there a step ago, the last row was not, and what is not there yet cannot be read
    press(canvas, "ArrowDown", "ArrowDown")
    with torch.inference_mode():
        record = bundled(FIRST_GPT2).core(torch.tensor([ids]), record=True).records[4]
    said = read_by_keyboard(picture(page, 0), "keys[1, 2] = ")
    assert said.endswith("already computed one step ago")
    shown = written(said.split(" = ")[1].split(" (")[0])
    assert shown == pytest.approx(float(record.k[0, 0, 1, 2]), rel=1e-3, abs=1e-4)
    for _ in range(n + 2):
        page.keyboard.press("ArrowDown")
    last = read_by_keyboard(picture(page, 0), f"keys[{n - 2}, 2] = ")
    assert "one step ago" not in last
    press(page.get_by_role("button", name="Play"), "Enter")
    expect(page.get_by_text("Step 4 of 4: ")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it ends at the last step
    settled(page)
    assert picture(page, 0).evaluate(HEIGHT) == height  # what is not there yet keeps its place
    # on a small phone the matrix of the scores keeps its numbers and scrolls, and the page does not
    wide = page.viewport_size
    assert wide is not None
    page.set_viewport_size({"width": 320, "height": 640})
    scores = panel(page, "scores")
    numbered = re.compile(r"^(2[6-9]|[3-9]\d)")  # cells without numbers are 22 pixels at most
    expect(scores.locator("canvas")).to_have_attribute("data-cell-width", numbered)
    assert scores.locator(".scroll").evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size(wide)
    settled(page)
    press(page.get_by_role("radio", name="the whole model"), "Space")
    expect(
        page.get_by_text(re.compile(r"For the whole model, [\d,]+ of [\d,]+ entries"))
    ).to_be_visible()
    unfold(page, "Take it away")
    with page.expect_download() as download:
        press(page.get_by_role("button", name="This head's matrices (NPZ)"), "Enter")
    assert download.value.suggested_filename.endswith("step4_layer4_head0.npz")


def test_the_number_of_tokens_waits_for_run(page: Page, site: Site):
    link = (
        f"/what-is-recomputed?what_is_recomputed_prompt={quote(PROMPT)}&what_is_recomputed_tokens=4"
    )
    open_page(page, site, link, "What is recomputed")
    expect(page.get_by_text("Ran 4 steps, each without and with the cache")).to_be_visible()
    set_slider(page, "New tokens", 0, -1)
    settled(page)
    expect(page.get_by_text("Ran 4 steps, each without and with the cache")).to_be_visible()
    with settings(page):
        expect(slider(page, "New tokens")).to_have_value("3")
        press(page.get_by_role("button", name="Run", exact=True), "Enter")
    expect(page.get_by_text("Ran 3 steps, each without and with the cache")).to_be_visible()
    expect(page.get_by_text("Step 3 of 3: ")).to_be_visible()
    expect_parameter(page, "what_is_recomputed_tokens", "3")
