"""One visit: what is typed and chosen on one page is there on the others, and on the way back."""

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
    """To another page by the navigation."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
    arrived(page, title)


def arrived(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    wait_until_settled(page)


def sentence(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def shown(page: Page, label: str) -> Locator:
    """The first slider with just this label."""
    by_name = page.get_by_text(label, exact=True)
    return page.get_by_test_id("stSlider").filter(has=by_name).first.locator("input")


def model(page: Page, label: str = "Model") -> Locator:
    """What the first picker of a model shows."""
    return page.get_by_role("combobox", name=label).first


def find_the_visit(page: Page, title: str) -> None:
    """Sentence, model, layer and head, where the page has them."""
    expect(sentence(page, SENTENCES[title])).to_have_value(TEXT)
    expect(model(page, "Model or example" if title == "Shapes" else "Model")).to_have_value(
        "SmolLM2 135M"
    )
    if title in ("Heads", "Side by side", "Scaling"):
        expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", str(LAYER))
        expect(shown(page, "Head")).to_have_attribute("aria-valuetext", str(HEAD))
    if title == "Ablate":
        expect(page.get_by_test_id("stMultiSelect")).to_contain_text(f"L{LAYER}H{HEAD}")
        expect(page).to_have_url(re.compile(f"ablate_heads=L{LAYER}H{HEAD}"))
    if title == "Shapes":
        expect_parameter(page, "shapes_head", str(HEAD))
        # three heads are drawn, of nine
        drawn = re.compile(f"layer {LAYER}: tokens 0 to 5 of 11; heads 6 to 8 of 9")
        expect(page.get_by_text(drawn)).to_be_visible()


def first_opened() -> HeadEdge:
    """The head that One pass opens first for the text."""
    passed = one_pass(DECODER, TEXT)
    opened = first_head(passed, compute_flow(passed.run), next_word_shares(passed))
    assert opened is not None
    return opened


def test_text_model_layer_and_head_travel(page: Page, site: Site):
    open_page(page, site, f"/?home_model={DECODER}", "Attention Lab")
    type_text(page, "Type a text", TEXT)
    go(page, "One pass")
    opened = first_opened()
    set_slider(page, "Layer", 0, LAYER - opened.layer)
    set_slider(page, "Head", 0, HEAD - opened.head)
    wait_until_settled(page)
    for title in SENTENCES:
        go(page, title)
        if title == "Scaling":  # the visit's head is in its third part
            press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
        find_the_visit(page, title)
    type_text(page, "Prompt", TEXT.upper())
    go(page, "Word pairs")  # once more
    expect(sentence(page, "Sentence")).to_have_value(TEXT.upper())
    expect_parameter(page, "word_pairs_text", TEXT.upper())
    page.go_back()
    arrived(page, "Generate")
    expect(sentence(page, "Prompt")).to_have_value(TEXT.upper())
    page.go_back()
    arrived(page, "Scaling")
    find_the_visit(page, "Scaling")


def test_a_page_is_one_entry_and_keeps_its_address(own_page: Page, site: Site):
    page = own_page  # a browser counts no more than 50 entries: other tests' would fill it up
    open_page(page, site, "/heads", "Heads")
    set_slider(page, "Layer", 0, -1)  # from the last one, which the text opens
    expect_parameter(page, "heads_layer", "4")
    entries = page.evaluate("history.length")
    go(page, "Scaling")
    assert page.evaluate("history.length") == entries + 1
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    expect_parameter(page, "scaling_layer", "4")
    assert "heads_" not in page.url
    wait_until_settled(page)  # a run that is left goes on writing its page's address
    page.go_back()
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", "4")
    wait_until_settled(page)  # going on before the page is there is another way through the history
    assert page.url == f"{site.url}/heads?heads_layer=4"
    page.go_forward()
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect_parameter(page, "scaling_layer", "4")


def test_a_choice_goes_along_though_a_busy_server_never_ran_it(own_page: Page, site: Site):
    """Such a server puts two requests together, and keeps the values of the later one."""
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
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", "3")
    expect_parameter(page, "scaling_layer", "3")
