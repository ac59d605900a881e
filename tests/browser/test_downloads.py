"""The link of a page, opened by somebody else, and its files."""

import re
import urllib.parse

import numpy as np
import pytest
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
from ui.export import qr

pytestmark = pytest.mark.browser


def open_downloads(page: Page) -> None:
    unfold(page, "Download or share")


def link(page: Page, holding: str) -> str:
    """The link on the page, once it holds what was chosen last."""
    block = page.locator(".code code").filter(has_text=re.compile("^http"))
    expect(block).to_contain_text(holding)
    expect(block).to_be_visible()  # it is sent when it is opened, and waits for what is above it
    return block.inner_text().strip()


def test_a_link_after_presets_and_controls_restores_the_view(page: Page, site: Site, other: Page):
    open_page(page, site, "/word-pairs", "Word pairs")
    open_downloads(page)
    # a preset and a swap: what they set is in the link of the very run that they cause
    choose_example(page, "woman: brush or portrait?")
    link(page, "word_pairs_query=woman")
    click(page.get_by_role("button", name="Swap the first two"))
    address = link(page, "word_pairs_a=woman")
    said = page.get_by_text("“\u2068brush\u2069” gives at most").inner_text()
    assert urllib.parse.urlsplit(address).path == "/word-pairs"
    assert address.startswith(site.url)
    other.goto(address)
    expect(other.get_by_text(said)).to_be_visible()
    expect(other.get_by_test_id("stToast")).to_have_count(0)
    open_downloads(other)
    assert link(other, "word_pairs_a=woman") == address
    with other.expect_download() as download:
        click(other.get_by_role("button", name="All numbers (NPZ)"))
    assert "weights_on_a" in np.load(download.value.path())
    # a slow browser still gets the file after other visitors' runs, at whose ends Streamlit cleans
    for query in ("brush", "woman", "brush"):
        click(page.get_by_role("button", name="Swap the first two"))
        link(page, f"word_pairs_a={query}")
    assert other.request.get(download.value.url).ok


def test_the_link_of_a_page_whose_address_ends_like_that_of_another(page: Page, site: Site):
    link_of_view = "/generated-tokens?generated_tokens_new=3"
    open_page(page, site, link_of_view, "Generated tokens")
    open_downloads(page)
    assert link(page, "generated_tokens_new=3") == site.url + link_of_view


def test_lists_and_sliders_are_in_the_link_of_heads(page: Page, site: Site, other: Page):
    open_whole_page(
        page,
        site,
        f"/heads?heads_model={DECODER}&heads_overlay=L3H8&heads_overlay=L0H2"
        "&heads_layer=3&heads_head=1"
        "&heads_text=Two+lamps+%26+a+kettle",
        "Heads",
    )
    open_downloads(page)
    set_slider(page, "Layer", 0, 2)
    address = link(page, "heads_layer=5")
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)
    assert asked["heads_overlay"] == ["L3H8", "L0H2"]
    assert asked["heads_text"] == ["Two lamps & a kettle"]
    other.goto(address)
    expect(other.get_by_text("in SmolLM2 135M, L5H1")).to_be_visible()
    expect(other.get_by_test_id("stToast")).to_have_count(0)
    open_downloads(other)
    assert link(other, "heads_layer=5") == address
    press(other.get_by_role("button", name="QR code"), "Enter")
    dialog = other.get_by_role("dialog", name="Open this view on a phone")
    source = dialog.get_by_role("img").get_attribute("src")
    assert source is not None
    shown = other.request.get(urllib.parse.urljoin(site.url, source)).body()
    assert shown == qr.png(address)
    other.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_piece_of_code_is_copied(page: Page, site: Site, allowed: bool):
    """Selected in any case: a visitor whose browser gives no clipboard copies it by hand."""
    if allowed:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, site, "/calculator", "Calculator")
    block = page.locator(".code").first
    button = block.get_by_role("button", name="Copy")
    click(button)
    expect(block.locator("code")).to_contain_text("32 layers × 8 sequences")
    formula = block.locator("code").inner_text()
    assert page.evaluate("getSelection().toString()") == formula
    if allowed:
        expect(button).to_have_attribute("data-copied", "")
        assert page.evaluate("navigator.clipboard.readText()") == formula
