"""Test Tokens in a browser: type, read a chip, step through a word."""

import re

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from pretrained.tokenization import gpt2
from tests.helpers.browser import (
    expect_parameter,
    open_whole_page,
    point,
    press,
    set_slider,
    type_text,
)
from tests.helpers.visitors import wait_until_settled


def row(page: Page, title: str) -> Locator:
    return page.locator("figure.chips").filter(has_text=title)


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/tokens", "Tokens")
    parts = row(page, "Parts")
    expect(parts.locator(".chip")).to_have_text(["␣s", "un", "ny"])
    below = page.get_by_role("heading", name="From id to input embedding")
    expect(page.get_by_text("largest difference", exact=False)).to_be_visible()
    wait_until_settled(page)
    before = below.evaluate("e => e.offsetTop")
    set_slider(page, "Step", 0, 2)
    expect(parts.locator(".chip")).to_have_text(["␣sunny"])
    expect_parameter(page, "tokens_step", "5")
    wait_until_settled(page)
    assert below.evaluate("e => e.offsetTop") == before  # stepping doesn't move anything else

    text = "<b>Zwölf</b> שלום 👍"
    type_text(page, "Text", text)
    tokens = gpt2.gpt2().encode(text)
    figure = row(page, f"GPT-2 (BPE): {len(tokens)} tokens")
    chips, readout = figure.locator(".chip"), figure.locator(".readout")
    expect(chips).to_have_count(len(tokens))
    # HTML in the user's text appears as text on the chips
    expect(figure.locator("b")).to_have_count(0)
    start, end = tokens.spans[3]
    message = (
        f"token 3: id {tokens.ids[3]}, characters {start} to {end}, bytes {tokens.raw[3].hex(' ')}"
    )
    point(chips.nth(3), readout, f"^{re.escape(message)}$")
    page.mouse.move(0, 0)
    press(figure.locator(".row"))
    for key, expected in (
        ("ArrowRight", f"token 0: id {tokens.ids[0]}"),
        ("ArrowRight", f"token 1: id {tokens.ids[1]}"),
        ("End", f"token {len(tokens) - 1}: id {tokens.ids[-1]}"),
        ("Escape", "^$"),
    ):
        page.keyboard.press(key)
        expect(readout).to_have_text(re.compile(expected))
    expect_parameter(page, "tokens_text", text)
