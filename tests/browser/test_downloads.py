"""Test page links opened by another visitor, downloads, and copied code."""

import re
import urllib.parse

import numpy as np
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose_example,
    click,
    open_page,
    open_whole_page,
    press,
    set_slider,
    unfold,
)
from tests.helpers.bundled_models import DECODER
from tests.helpers.visitors import wait_until_settled
from ui.export import qr


def link(page: Page, holding: str) -> str:
    """Return the page's link once it includes the latest selection."""
    block = page.locator(".code code").filter(has_text=re.compile("^http"))
    expect(block).to_contain_text(holding)
    expect(block).to_be_visible()  # the link is sent when it's opened, after everything above it
    return block.inner_text().strip()


def test_link_and_download_after_a_preset(page: Page, site: Site, other: Page):
    open_page(page, site, "/word-pairs", "Word pairs")
    unfold(page, "Download or share")
    # a preset and a swap appear in the link of the run that they trigger
    choose_example(page, "woman: brush or portrait?")
    link(page, "word_pairs_query=woman")
    click(page.get_by_role("button", name="Swap query and A"))
    address = link(page, "word_pairs_a=woman")
    claim = page.get_by_text("“\u2068brush\u2069” gives").inner_text()
    assert address.startswith(f"{site.url}/word-pairs?")
    other.goto(address)
    expect(other.get_by_text(claim)).to_be_visible()
    expect(other.get_by_test_id("stToast")).to_have_count(0)
    unfold(other, "Download or share")
    with other.expect_download() as download:
        click(other.get_by_role("button", name="All numbers (NPZ)"))
    assert "weights_on_a" in np.load(download.value.path())
    # Streamlit cleans up files after every visitor's run; a slow browser must still get this file
    for query in ("brush", "woman"):
        click(page.get_by_role("button", name="Swap query and A"))
        link(page, f"word_pairs_a={query}")
    assert other.request.get(download.value.url).ok


def test_lists_and_sliders_are_in_the_heads_link(page: Page, site: Site):
    open_whole_page(
        page,
        site,
        f"/heads?heads_model={DECODER}&heads_overlay=L3H8&heads_overlay=L0H2"
        "&heads_layer=3&heads_head=1&heads_text=Two+lamps+%26+a+kettle",
        "Heads",
    )
    unfold(page, "Download or share")
    set_slider(page, "Layer", 0, 2)
    address = link(page, "heads_layer=5")
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)
    assert query["heads_overlay"] == ["L3H8", "L0H2"]
    assert query["heads_text"] == ["Two lamps & a kettle"]
    wait_until_settled(page)
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_text("in SmolLM2 135M, L5H1")).to_be_visible()
    unfold(page, "Download or share")
    assert link(page, "heads_layer=5") == address
    press(page.get_by_role("button", name="QR code"), "Enter")
    dialog = page.get_by_role("dialog", name="Open this view on a phone")
    source = dialog.get_by_role("img").get_attribute("src")
    assert source is not None
    image = page.request.get(urllib.parse.urljoin(site.url, source)).body()
    assert image == qr.png(address)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_code_can_be_copied(page: Page, site: Site):
    """The code is always selected, so visitors whose browser blocks the clipboard can copy it."""
    open_page(page, site, "/calculator", "Calculator")
    block = page.locator(".code").first
    button, code = block.get_by_role("button", name="Copy"), block.locator("code")
    click(button)
    expect(code).to_contain_text("32 layers × 8 sequences")
    assert page.evaluate("getSelection().toString()") == code.inner_text()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    click(button)
    expect(button).to_have_attribute("data-copied", "")
    assert page.evaluate("navigator.clipboard.readText()") == code.inner_text()
