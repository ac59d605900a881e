"""The page "Generated tokens" as a visitor walks it: run, play, step, read, leave out, stop."""

import re
import zipfile
from urllib.parse import quote
from xml.etree import ElementTree

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    click,
    expect_parameter,
    open_page,
    open_whole_page,
    press,
    read_by_keyboard,
    set_slider,
    settings,
    slider,
    unfold,
)
from tests.helpers.bundled_models import DECODER
from tests.helpers.visitors import settled

PROMPT = "Two cats sat. Two"
ADDRESS = f"/generated-tokens?generated_tokens_prompt={quote(PROMPT)}&generated_tokens_new=6"


def text(page: Page) -> Locator:
    return page.locator("figure.shaded")


def test_play_step_and_read_with_the_keyboard(page: Page, site: Site):
    open_page(page, site, ADDRESS, "Generated tokens")
    expect(page.get_by_text("6 tokens, one step each")).to_be_visible()
    expect(page.get_by_text("In step 5, ")).to_be_visible()
    settled(page)
    height = text(page).evaluate("element => element.offsetHeight")
    press(page.get_by_role("button", name="Play"), "Enter")
    expect(page.get_by_text("In step 6, ")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it ends at the last step
    set_slider(page, "Step", 0, -4)
    expect(page.get_by_text("In step 2, ")).to_be_visible()
    expect(page).to_have_url(re.compile("generated_tokens_step=2"))
    settled(page)
    # what is not there yet keeps its place
    assert text(page).evaluate("element => element.offsetHeight") == height
    row = text(page).locator(".row")
    press(row, "ArrowRight")
    said = read_by_keyboard(text(page), "“Two”: ")
    assert re.fullmatch(r"“Two”: .*\d%, adds .+", said)
    page.keyboard.press("End")  # the one that was chosen; those after it are not there
    expect(text(page).locator(".readout")).to_contain_text("chosen with probability")
    expect(text(page).locator(".token:not(.bare)").last).to_have_class(re.compile("asks"))
    with settings(page) as opened:
        press(opened.get_by_test_id("stCheckbox").locator("input"), "Space")
    expect(text(page).locator(".title")).to_contain_text("without the first token")
    press(row, "Home")
    expect(text(page).locator(".readout")).to_contain_text("“\u2068Two\u2069”: 0%, ")


def test_downloads_and_hostile_words(page: Page, site: Site):
    hostile = quote("<img/src=x> ![x](y) \u202e\u0645\u0631")
    open_whole_page(
        page,
        site,
        f"/generated-tokens?generated_tokens_prompt={hostile}&generated_tokens_new=3",
        "Generated tokens",
    )
    expect(page.get_by_text("3 tokens, one step each")).to_be_visible()
    expect(text(page)).to_contain_text("<")
    expect(page.get_by_test_id("stMain").locator("img")).to_have_count(0)
    unfold(page, "Take it away")
    for button, ending in (("All heads, float32 (NPZ)", ".npz"), ("All charts", ".zip")):
        with page.expect_download() as download:
            click(page.get_by_role("button", name=button))
        assert download.value.suggested_filename.endswith(ending)
    with zipfile.ZipFile(download.value.path()) as files:
        svg = ElementTree.fromstring(files.read(f"{DECODER}-step_3.svg"))
    assert not [element for element in svg.iter() if element.tag.endswith(("img", "image"))]
    assert "src" in "".join(svg.itertext())


def test_a_run_is_stopped_and_taken_up_again(page: Page, site: Site):
    prompt = quote("A long story about a very small ship on a very large sea " * 6)
    open_page(
        page,
        site,
        f"/generated-tokens?generated_tokens_prompt={prompt}&generated_tokens_new=40",
        "Generated tokens",
    )
    page.locator(".st-key-generated_tokens_stop button").click()
    expect(page.get_by_text("Stopped. Press Run to start again.")).to_be_visible()
    with settings(page):
        click(page.get_by_role("button", name="Run", exact=True))
    expect(page.get_by_text(re.compile(r"\d+ of 40 tokens|^40 tokens, one"))).to_be_visible()


def test_settings_wait_for_run_and_are_in_the_link(page: Page, site: Site, other: Page):
    open_page(page, site, ADDRESS, "Generated tokens")
    expect(page.get_by_text("6 tokens, one step each, at temperature 0, in")).to_be_visible()
    set_slider(page, "New tokens", 0, -2)
    set_slider(page, "Temperature", 0, 3)
    settled(page)
    expect(page.get_by_text("6 tokens, one step each, at temperature 0, in")).to_be_visible()
    # what was moved is still moved, and who opens this address gets it
    expect_parameter(page, "generated_tokens_new", "4")
    expect_parameter(page, "generated_tokens_temperature", "0.15")
    seed = page.get_by_label("Seed", exact=True)
    with settings(page):
        expect(slider(page, "New tokens")).to_have_value("4")
        expect(slider(page, "Temperature")).to_have_value("0.15")
        seed.fill("9")
        press(page.get_by_role("button", name="Run", exact=True), "Enter")
    said = "4 tokens, one step each, at temperature 0.15 with seed 9, in"
    expect(page.get_by_text(said)).to_be_visible()
    expect_parameter(page, "generated_tokens_new", "4")
    expect_parameter(page, "generated_tokens_temperature", "0.15")
    expect_parameter(page, "generated_tokens_seed", "9.0")
    settled(page)
    expect(page.get_by_text(said)).to_be_visible()
    with settings(page):
        seed.fill("10")
        seed.press("Enter")  # sends the row as the button does
    expect(page.get_by_text(said.replace("seed 9", "seed 10"))).to_be_visible()
    expect_parameter(page, "generated_tokens_seed", "10.0")
    settled(page)
    other.goto(page.url)
    expect(other.get_by_text(said.replace("seed 9", "seed 10"))).to_be_visible()
    with settings(other):
        expect(slider(other, "New tokens")).to_have_value("4")
        expect(slider(other, "Temperature")).to_have_value("0.15")
        expect(other.get_by_label("Seed", exact=True)).to_have_value("10")
