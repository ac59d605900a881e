"""One visit: what is typed and chosen on one page is there on the others, and on the way back."""

import re

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import expect_parameter, open_page, press, set_slider, type_text
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.visitors import settled

TEXT = "Two cats sat on the warm mat while it rained"
SENTENCES = {
    "Heads": "Sentence",
    "Side by side": "Sentence",
    "Ablate": "Text",
    "Word pairs": "Sentence",
    "Generate": "Prompt",
}
LAYER, HEAD = 4, 7


def go(page: Page, title: str) -> None:
    """To another page by the navigation."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    settled(page)


def sentence(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def shown(page: Page, label: str) -> Locator:
    """The first slider with just this label."""
    named = page.get_by_text(label, exact=True)
    return page.get_by_test_id("stSlider").filter(has=named).first.locator("input")


def test_text_layer_and_head_travel(page: Page, site: Site):
    open_page(page, site, "/", "Attention Lab")
    type_text(page, "Type a sentence", TEXT)
    set_slider(page, "Layer", 0, LAYER - 3)
    set_slider(page, "Head", 0, HEAD - 1)
    settled(page)
    for title, label in SENTENCES.items():
        go(page, title)
        expect(sentence(page, label)).to_have_value(TEXT)
        if title in ("Heads", "Side by side"):
            expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", str(LAYER))
            expect(shown(page, "Head")).to_have_attribute("aria-valuetext", str(HEAD))
        if title == "Ablate":
            expect(page.get_by_test_id("stMultiSelect")).to_contain_text(f"L{LAYER}H{HEAD}")
            expect(page).to_have_url(re.compile(f"ablate_heads=L{LAYER}H{HEAD}"))
    type_text(page, "Prompt", TEXT.upper())
    go(page, "Word pairs")  # once more
    expect(sentence(page, "Sentence")).to_have_value(TEXT.upper())
    expect_parameter(page, "word_pairs_text", TEXT.upper())
    page.go_back()
    expect(sentence(page, "Prompt")).to_have_value(TEXT.upper())
    page.go_back()
    expect(page.get_by_role("heading", name="Word pairs", level=1)).to_be_visible()
    settled(page)
    expect(sentence(page, "Sentence")).to_have_value(TEXT)
    page.go_back()
    expect(page.get_by_test_id("stMultiSelect")).to_contain_text(f"L{LAYER}H{HEAD}")
    expect_parameter(page, "ablate_text", TEXT)


def test_a_page_is_one_entry_and_keeps_its_address(page: Page, site: Site):
    open_page(page, site, "/heads", "Heads")
    set_slider(page, "Layer", 0, 2)
    expect_parameter(page, "heads_layer", "5")
    entries = page.evaluate("history.length")
    go(page, "Scaling")
    assert page.evaluate("history.length") == entries + 1
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    expect_parameter(page, "scaling_layer", "5")
    assert "heads_" not in page.url
    page.go_back()
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", "5")
    assert page.url == f"{site.url}/heads?heads_layer=5"
    page.go_forward()
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect_parameter(page, "scaling_layer", "5")


def test_the_model_travels_to_pages_that_can_run_it(page: Page, site: Site):
    open_page(page, site, f"/word-pairs?word_pairs_model={DECODER}", "Word pairs")
    go(page, "Heads")
    expect_parameter(page, "heads_model", DECODER)
    expect(page.get_by_text("135M").first).to_be_visible()
    open_page(page, site, f"/ablate?ablate_model={ENCODER}", "Ablate")
    go(page, "Generate")
    expect(page.get_by_text("writes no text: another model runs here")).to_be_visible()
