"""Test that text and selections on one page carry over to the others, also when going back."""

import re

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from serving.flow import HeadEdge, compute_flow, next_word_shares
from serving.one_pass import one_pass
from tests.helpers.browser import (
    expect_parameter,
    open_page,
    press,
    set_slider,
    type_text,
)
from tests.helpers.bundled_models import DECODER
from tests.helpers.visitors import wait_until_settled
from ui.canvas.one_pass.claim import first_head

TEXT = "Two cats sat on the warm mat while it rained"
SENTENCES = {
    "Heads": "Sentence",
    "Side by side": "Sentence",
    "Ablate": "Text",
    "Word pairs": "Sentence",
    "Shapes": "Sentence",
    "Scaling": "Sentence",
    "Generate": "Prompt",
}
LAYER, HEAD = 13, 7


def go(page: Page, title: str) -> None:
    """Open another page from the navigation."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
    expect_page(page, title)


def expect_page(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    wait_until_settled(page)


def sentence(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def layer_or_head_slider(page: Page, label: str) -> Locator:
    """Return the first slider with exactly this label."""
    by_name = page.get_by_text(label, exact=True)
    return page.get_by_test_id("stSlider").filter(has=by_name).first.locator("input")


def model(page: Page, label: str = "Model") -> Locator:
    """Return the first model picker."""
    return page.get_by_role("combobox", name=label).first


def expect_visit_state(page: Page, title: str) -> None:
    """Check the text, model, layer and head on pages that have them."""
    expect(sentence(page, SENTENCES[title])).to_have_value(TEXT)
    expect(model(page, "Model or example" if title == "Shapes" else "Model")).to_have_value(
        "SmolLM2 135M"
    )
    if title in ("Heads", "Side by side", "Scaling"):
        expect(layer_or_head_slider(page, "Layer")).to_have_attribute("aria-valuetext", str(LAYER))
        expect(layer_or_head_slider(page, "Head")).to_have_attribute("aria-valuetext", str(HEAD))
    if title == "Ablate":
        expect(page.get_by_test_id("stMultiSelect")).to_contain_text(f"L{LAYER}H{HEAD}")
        expect(page).to_have_url(re.compile(f"ablate_heads=L{LAYER}H{HEAD}"))
    if title == "Shapes":
        expect_parameter(page, "shapes_head", str(HEAD))
        # three of nine heads are drawn
        drawn = re.compile(f"layer {LAYER}: tokens 0 to 5 of 11; heads 6 to 8 of 9")
        expect(page.get_by_text(drawn)).to_be_visible()


def default_head() -> HeadEdge:
    """Return the head that One pass selects by default for the text."""
    passed = one_pass(DECODER, TEXT)
    selected = first_head(passed, compute_flow(passed.run), next_word_shares(passed))
    assert selected is not None
    return selected


def test_text_model_layer_and_head_carry_over(page: Page, site: Site):
    open_page(page, site, f"/?home_model={DECODER}", "Attention Lab")
    type_text(page, "Type a text", TEXT)
    go(page, "One pass")
    selected = default_head()
    set_slider(page, "Layer", 0, LAYER - selected.layer)
    set_slider(page, "Head", 0, HEAD - selected.head)
    wait_until_settled(page)
    for title in SENTENCES:
        go(page, title)
        if title == "Scaling":  # the head is in the third section
            press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
        expect_visit_state(page, title)
    type_text(page, "Prompt", TEXT.upper())
    go(page, "Word pairs")  # open it a second time
    expect(sentence(page, "Sentence")).to_have_value(TEXT.upper())
    expect_parameter(page, "word_pairs_text", TEXT.upper())
    page.go_back()
    expect_page(page, "Generate")
    expect(sentence(page, "Prompt")).to_have_value(TEXT.upper())
    page.go_back()
    expect_page(page, "Scaling")
    expect_visit_state(page, "Scaling")


def test_page_is_one_history_entry_and_keeps_its_url(own_page: Page, site: Site):
    page = own_page  # the shared page's history could reach the browser's limit of 50 entries
    open_page(page, site, "/heads", "Heads")
    set_slider(page, "Layer", 0, -1)  # the default for this text is the last layer
    expect_parameter(page, "heads_layer", "4")
    entries = page.evaluate("history.length")
    go(page, "Scaling")
    assert page.evaluate("history.length") == entries + 1
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    expect_parameter(page, "scaling_layer", "4")
    assert "heads_" not in page.url
    wait_until_settled(page)  # a run that continues after navigation would write its page's URL
    page.go_back()
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(layer_or_head_slider(page, "Layer")).to_have_attribute("aria-valuetext", "4")
    # going forward before the page is ready would change the history in a different way
    wait_until_settled(page)
    assert page.url == f"{site.url}/heads?heads_layer=4"
    page.go_forward()
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect_parameter(page, "scaling_layer", "4")


def test_selection_carries_over_though_a_busy_server_never_ran_it(own_page: Page, site: Site):
    """A busy server merges two requests and keeps the values of the later one."""
    page = own_page
    open_page(page, site, "/heads?heads_layer=2", "Heads")
    wait_until_settled(page)
    page.evaluate(
        """() => {
          // the prototype behind the one that `wait_until_settled` counts on
          const sockets = Object.getPrototypeOf(WebSocket.prototype);
          const { send } = sockets;
          window.lost = 0;
          sockets.send = () => { window.lost += 1; };
          window.sendAgain = () => { sockets.send = send; };
        }"""
    )
    set_slider(page, "Layer", 0, 1)
    expect_parameter(page, "heads_layer", "3")
    page.wait_for_function("window.lost === 1")
    page.evaluate("window.sendAgain()")
    go(page, "Scaling")
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    wait_until_settled(page)
    expect(layer_or_head_slider(page, "Layer")).to_have_attribute("aria-valuetext", "3")
    expect_parameter(page, "scaling_layer", "3")
