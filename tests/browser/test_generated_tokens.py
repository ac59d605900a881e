"""Test Generated tokens in a browser: play, step, read, ablate; settings wait for Run."""

import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    expect_parameter,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
    settings,
    slider,
)
from tests.helpers.visitors import wait_until_settled

PROMPT = "Two cats sat. Two"
ADDRESS = f"/generated-tokens?generated_tokens_prompt={quote(PROMPT)}&generated_tokens_new=6"
HEIGHT = "element => element.offsetHeight"


def text(page: Page) -> Locator:
    return page.locator("figure.shaded")


def test_play_step_and_read_with_the_keyboard(page: Page, site: Site):
    open_page(page, site, ADDRESS, "Generated tokens")
    expect(page.get_by_text("In step 5, ")).to_be_visible()
    wait_until_settled(page)
    height = text(page).evaluate(HEIGHT)
    press(page.get_by_role("button", name="Play"), "Enter")
    expect(page.get_by_text("In step 6, ")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # playback stops at the end
    set_slider(page, "Step", 0, -4)
    expect(page.get_by_text("In step 2, ")).to_be_visible()
    expect(page).to_have_url(re.compile("generated_tokens_step=2"))
    wait_until_settled(page)
    # tokens that aren't generated yet reserve their space
    assert text(page).evaluate(HEIGHT) == height
    row = text(page).locator(".row")
    press(row, "ArrowRight")
    message = read_by_keyboard(text(page), "“Two”: ")
    assert re.fullmatch(r"“Two”: .*\d%, adds .+", message)
    page.keyboard.press("End")  # moves to the selected token, because later ones aren't visible yet
    expect(text(page).locator(".readout")).to_contain_text("chosen with probability")
    with settings(page) as panel:
        press(panel.get_by_test_id("stCheckbox").locator("input"), "Space")
    expect(text(page).locator(".title")).to_contain_text("without the first token")
    press(row, "Home")
    expect(text(page).locator(".readout")).to_contain_text("“\u2068Two\u2069”: 0%, ")


def test_settings_wait_for_run_and_are_in_the_link(page: Page, site: Site):
    open_page(page, site, ADDRESS, "Generated tokens")
    before = page.get_by_text("6 tokens, one step each, at temperature 0, in")
    expect(before).to_be_visible()
    set_slider(page, "New tokens", 0, -2)
    set_slider(page, "Temperature", 0, 3)
    wait_until_settled(page)
    expect(before).to_be_visible()
    # changed settings stay changed, and the URL restores them for another visitor
    expect_parameter(page, "generated_tokens_new", "4")
    expect_parameter(page, "generated_tokens_temperature", "0.15")
    message = "4 tokens, one step each, at temperature 0.15 with seed {}, in"
    seed = page.get_by_label("Seed", exact=True)
    with settings(page):
        expect(slider(page, "New tokens")).to_have_value("4")
        seed.fill("9")
        press(page.get_by_role("button", name="Run", exact=True), "Enter")
    expect(page.get_by_text(message.format(9))).to_be_visible()
    with settings(page):
        seed.fill("10")
        seed.press("Enter")  # Enter submits the form like its button does
    expect(page.get_by_text(message.format(10))).to_be_visible()
    expect_parameter(page, "generated_tokens_seed", "10.0")
    wait_until_settled(page)
    page.reload()
    expect(page.get_by_text(message.format(10))).to_be_visible()
    with settings(page):
        expect(slider(page, "New tokens")).to_have_value("4")
        expect(slider(page, "Temperature")).to_have_value("0.15")
        expect(seed).to_have_value("10")
