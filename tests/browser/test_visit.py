"""One visit: what is typed and chosen on one page is there on the others, and on the way back."""

import re
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from serving.number_text import percent
from tests.helpers.browser import (
    click,
    expect_parameter,
    heatmap,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
    type_text,
)
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_BERT, FIRST_GPT2, attention
from tests.helpers.panels import panel
from tests.helpers.visitors import settled

TEXT = "Two cats sat on the warm mat while it rained"
SENTENCES = {
    "Attention Lab": "Type a text",
    "Heads": "Sentence",
    "Side by side": "Sentence",
    "Ablate": "Text",
    "Word pairs": "Sentence",
    "Shapes": "Sentence",
    "Scaling": "Sentence",
    "Generate": "Prompt",
}
ANIMAL = "The animal didn't cross the street because it was too tired"
LAYER, HEAD = 13, 7


def go(page: Page, title: str) -> None:
    """To another page by the navigation."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=title, exact=True).click()
    arrived(page, title)


def arrived(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    settled(page)


def sentence(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def shown(page: Page, label: str) -> Locator:
    """The first slider with just this label."""
    named = page.get_by_text(label, exact=True)
    return page.get_by_test_id("stSlider").filter(has=named).first.locator("input")


def model(page: Page, label: str = "Model") -> Locator:
    """What the first picker of a model shows."""
    return page.get_by_role("combobox", name=label).first


def find_the_visit(page: Page, title: str) -> None:
    """Sentence, model, layer and head, where the page has them."""
    expect(sentence(page, SENTENCES[title])).to_have_value(TEXT)
    expect(model(page, "Steps of" if title == "Shapes" else "Model")).to_have_value("SmolLM2 135M")
    if title == "Attention Lab":
        expect(page.get_by_text(f"Layer {LAYER}, head {HEAD} of this text")).to_be_visible()
    if title in ("Heads", "Side by side", "Scaling"):
        expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", str(LAYER))
        expect(shown(page, "Head")).to_have_attribute("aria-valuetext", str(HEAD))
    if title == "Ablate":
        expect(page.get_by_test_id("stMultiSelect")).to_contain_text(f"L{LAYER}H{HEAD}")
        expect(page).to_have_url(re.compile(f"ablate_heads=L{LAYER}H{HEAD}"))
    if title == "Shapes":
        expect_parameter(page, "shapes_head", str(HEAD))
        # three heads are drawn, of nine
        drawn = re.compile(f"Drawn: layer {LAYER}; tokens 0 to 5 of 11; heads 6 to 8 of 9")
        expect(page.get_by_text(drawn)).to_be_visible()


def test_text_model_layer_and_head_travel(page: Page, site: Site):
    open_page(page, site, f"/?home_model={DECODER}", "Attention Lab")
    type_text(page, "Type a text", TEXT)
    set_slider(page, "Layer", 0, LAYER - 15)  # the middle one of 30 is open at first
    set_slider(page, "Head", 0, HEAD)
    settled(page)
    home, *others = SENTENCES
    for title in others:
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
    for title in [*reversed(others[:-1]), home]:
        page.go_back()
        arrived(page, title)
        find_the_visit(page, title)


def choose_model(page: Page, name: str) -> None:
    press(model(page), "ArrowDown")
    click(page.get_by_role("option", name=name))
    expect(model(page)).to_have_value(name)


@dataclass
class Visitor:
    """Counts what a visitor does."""

    page: Page
    acts: int = 0

    def click(self, target: Locator, heading: str | None = None) -> None:
        expect(target).to_be_in_viewport()
        click(target)
        self.acts += 1
        if heading is not None:
            arrived(self.page, heading)

    def type(self, label: str, text: str) -> None:
        type_text(self.page, label, text)
        self.acts += 2  # the text, and Enter


def test_goals_are_a_few_acts_away(page: Page, site: Site):
    page.set_viewport_size({"width": 1440, "height": 900})
    navigation = page.get_by_test_id("stSidebarNav")
    links = page.get_by_test_id("stPageLink")

    def at_home() -> Visitor:
        open_page(page, site, "/", "Attention Lab")
        settled(page)
        return Visitor(page)

    # "it" looks at "animal": said, and framed in the picture
    visitor = at_home()
    visitor.click(navigation.get_by_role("link", name="Heads", exact=True), "Heads")
    weights, _ = attention(ENCODER, ANIMAL, 3, 1)
    said = (
        f"“\u2068it\u2069” gives {percent(weights[10, 2])} of its attention to “\u2068animal\u2069”"
    )
    expect(page.get_by_text(said)).to_be_in_viewport()
    read_by_keyboard(page.locator("figure.heatmap"), "query 10 “it” → key 2 “animal”: weight")
    assert visitor.acts <= 1

    # one pair of words in two models, and in which head the other one has it most
    visitor = at_home()
    visitor.click(navigation.get_by_role("link", name="Side by side"), "Side by side")
    weights, tokens = attention(FIRST_BERT, ANIMAL, 3, 1)
    query, key = (tokens.labels.index(label) for label in ("too", "was"))
    said = f"“\u2068too\u2069” gives {percent(weights[query, key])} of its attention"
    expect(page.get_by_text(said)).to_be_in_viewport()
    weights, _ = attention(FIRST_GPT2, ANIMAL, 3, 1)
    expect(page.get_by_text(f"The same pair: {percent(weights[query, key])}.")).to_be_in_viewport()
    visitor.click(page.get_by_role("button", name=re.compile("Most in L[0-9]H[0-9]: ")))
    figure = heatmap(page, "GPT-2 novels")
    expect(figure).to_be_in_viewport()
    read_by_keyboard(figure, f"query {query} “too” → key {key} “was”: weight")
    assert visitor.acts <= 2

    # what the cache saves over 100 tokens
    visitor = at_home()
    visitor.click(navigation.get_by_role("link", name="Timing"), "Timing")
    expect(page.get_by_text("for 100 new tokens the cache is").first).to_be_in_viewport()
    assert visitor.acts <= 2

    # step 6 of a real layer on a sentence of one's own
    visitor = at_home()
    visitor.type("Type a text", TEXT)
    visitor.click(links.get_by_role("link", name="Step through"), "Shapes")
    expect(page.get_by_text("Made now: 6. group by head")).to_be_in_viewport()
    expect(sentence(page, "Sentence")).to_have_value(TEXT)
    expect(panel(page, "step 6: queries")).to_be_in_viewport()
    expect(page.get_by_text("Drawn: layer 15; tokens 0 to 5 of 11; heads 0 to 2")).to_be_visible()
    assert visitor.acts <= 3


def test_a_page_is_one_entry_and_keeps_its_address(own_page: Page, site: Site):
    page = own_page  # a browser counts no more than 50 entries: other tests' would fill it up
    open_page(page, site, "/heads", "Heads")
    set_slider(page, "Layer", 0, 2)
    expect_parameter(page, "heads_layer", "5")
    entries = page.evaluate("history.length")
    go(page, "Scaling")
    assert page.evaluate("history.length") == entries + 1
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    expect_parameter(page, "scaling_layer", "5")
    assert "heads_" not in page.url
    settled(page)  # a run that is left goes on writing its page's address
    page.go_back()
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", "5")
    settled(page)  # going on before the page is there is another way through the history
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


@pytest.mark.parametrize("presses_before", [0, 1])
def test_a_choice_goes_along_though_a_busy_server_never_ran_it(
    own_page: Page, site: Site, presses_before: int
):
    """Such a server puts two requests together, and keeps the values of the later one."""
    page = own_page
    open_page(page, site, "/heads", "Heads")
    set_slider(page, "Layer", 0, presses_before)
    settled(page)
    page.evaluate(
        """() => {
          const sockets = Object.getPrototypeOf(WebSocket.prototype);  // behind that of `settled`
          const { send } = sockets;
          window.lost = 0;
          sockets.send = () => { window.lost += 1; };
          window.sendAgain = () => { sockets.send = send; };
        }"""
    )
    set_slider(page, "Layer", 0, 1)
    layer = str(4 + presses_before)
    expect_parameter(page, "heads_layer", layer)
    page.wait_for_function("window.lost === 1")
    page.evaluate("window.sendAgain()")
    go(page, "Scaling")
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    settled(page)
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", layer)
    expect_parameter(page, "scaling_layer", layer)
