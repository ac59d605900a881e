"""Tokens in a browser: type, read a chip, step through a word, see what enters layer 0."""

import re
import urllib.parse

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from pretrained.tokenization import gpt2
from tests.helpers.browser import open_page, open_whole_page, point, press, set_slider, type_text
from tests.helpers.visitors import settled


def row(page: Page, title: str) -> Locator:
    return page.locator("figure.chips").filter(has_text=title)


def test_a_text_of_one_s_own_is_cut_and_read(page: Page, site: Site):
    open_page(page, site, "/tokens", "Tokens")
    expect(row(page, "GPT-2 (BPE): 7 tokens")).to_be_visible()
    text = "<b>Zwölf</b> שלום 👍"
    type_text(page, "Text", text)
    tokens = gpt2.gpt2().encode(text)
    figure = row(page, f"GPT-2 (BPE): {len(tokens)} tokens")
    expect(figure).to_be_visible()
    chips = figure.locator(".chip")
    expect(chips).to_have_count(len(tokens))
    # markup of a visitor is text on the chips
    expect(figure.locator("b")).to_have_count(0)
    for index in (0, 3, len(tokens) - 1):
        start, end = tokens.spans[index]
        said = (
            f"token {index}: id {tokens.ids[index]}, characters {start} to {end}, "
            f"bytes {tokens.raw[index].hex(' ')}"
        )
        point(chips.nth(index), figure.locator(".readout"), f"^{re.escape(said)}$")
    expect(page).to_have_url(
        re.compile(re.escape(f"tokens_text={urllib.parse.quote(text, safe='')}"[:25]))
    )


def test_chips_are_read_with_the_keyboard(page: Page, site: Site):
    open_page(page, site, "/tokens", "Tokens")
    figure = row(page, "GPT-2 (BPE): 7 tokens")
    press(figure.locator(".row"))
    for key, expected in (
        ("ArrowRight", "token 0: id 464"),
        ("ArrowRight", "token 1: id 1306"),
        ("End", "token 6: id 27737"),
        ("Home", "token 0: id 464"),
        ("Escape", "^$"),
    ):
        page.keyboard.press(key)
        expect(figure.locator(".readout")).to_have_text(re.compile(expected))


def test_stepping_moves_nothing_else(page: Page, site: Site):
    open_whole_page(page, site, "/tokens", "Tokens")
    figure = row(page, "Parts")
    expect(figure.locator(".chip")).to_have_text(["␣s", "un", "ny"])
    below = page.get_by_role("heading", name="From id to input embedding")
    expect(page.get_by_text("largest difference", exact=False)).to_be_visible()
    settled(page)
    before = below.evaluate("e => e.offsetTop")
    set_slider(page, "Step", 0, 2)
    expect(figure.locator(".chip")).to_have_text(["␣sunny"])
    expect(figure.locator(".readout")).to_contain_text("merge 27,481")
    settled(page)
    assert below.evaluate("e => e.offsetTop") == before
    expect(page).to_have_url(re.compile("tokens_step=5"))


def test_a_link_opens_the_vectors_of_a_token(page: Page, site: Site):
    link = "/tokens?tokens_model=smollm2-135m-instruct&tokens_place=2"
    open_whole_page(page, site, link, "Tokens")
    expect(page.get_by_text("adds no position vector", exact=False)).to_be_visible()
    chosen = row(page, "SmolLM2 135M").locator(".chosen")
    expect(chosen).to_have_text(["␣day"])
