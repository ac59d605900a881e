"""One visit: what is typed and chosen on one page is there on the others, and on the way back."""

import re
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from serving import heads, runs
from serving.flow import Carried, flow_of, why_next
from serving.one_pass import one_pass
from tests.helpers.browser import (
    click,
    expect_parameter,
    open_page,
    press,
    read_by_keyboard,
    set_slider,
    type_text,
)
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_BERT, FIRST_GPT2, attention
from tests.helpers.panels import panel
from tests.helpers.visitors import settled
from ui.canvas.one_pass.claim import first_head
from ui.text.number_text import percent

TEXT = "Two cats sat on the warm mat while it rained"
SENTENCES = {
    "One pass": "Text",
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
    if title == "One pass":
        expect_parameter(page, "one_pass_layer", str(LAYER))
        expect_parameter(page, "one_pass_head", str(HEAD))
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


def first_opened() -> Carried:
    """The head that One pass opens first for the text."""
    passed = one_pass(DECODER, TEXT)
    opened = first_head(passed, flow_of(passed.run), why_next(passed))
    assert opened is not None
    return opened


def test_text_model_layer_and_head_travel(page: Page, site: Site):
    open_page(page, site, f"/?home_model={DECODER}", "Attention Lab")
    type_text(page, "Type a text", TEXT)
    go(page, "One pass")
    opened = first_opened()
    set_slider(page, "Layer", 0, LAYER - opened.layer)
    set_slider(page, "Head", 0, HEAD - opened.head)
    settled(page)
    first, *others = SENTENCES
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
    for title in [*reversed(others[:-1]), first]:
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
    first = heads.first_head(runs.run(ENCODER, ANIMAL))
    weights, _ = attention(ENCODER, ANIMAL, first.layer, first.head)
    share = percent(weights[10, 2])
    said = f"“\u2068it\u2069” gives {share} of its attention to “\u2068animal\u2069”"
    expect(page.get_by_text(said)).to_be_in_viewport()
    read_by_keyboard(page.locator("figure.heatmap"), f"“it” → “animal”: {share}")
    assert visitor.acts <= 1

    # one pair of words in two models
    visitor = at_home()
    visitor.click(navigation.get_by_role("link", name="Side by side"), "Side by side")
    run, other = runs.run(FIRST_BERT, ANIMAL), runs.run(FIRST_GPT2, ANIMAL)
    head, other_head = heads.first_head(run), heads.first_head(other)
    query, key = heads.strongest(run, head.layer, head.head, causal=True)
    labels = [f"“\u2068{run.tokens.labels[token]}\u2069”" for token in (query, key)]
    share = percent(float(run.weights[head.layer, head.head, query, key]))
    said = f"{labels[0]} gives {share} of its attention to {labels[1]}"
    expect(page.get_by_text(said)).to_be_in_viewport()
    share = percent(float(other.weights[other_head.layer, other_head.head, query, key]))
    expect(page.get_by_text(f"The same pair: {share}.")).to_be_in_viewport()
    assert visitor.acts <= 1

    # what the cache saves over 100 tokens
    visitor = at_home()
    visitor.click(navigation.get_by_role("link", name="Timing"), "Timing")
    expect(page.get_by_text("for 100 new tokens the cache is").first).to_be_in_viewport()
    assert visitor.acts <= 2

    # step 6 of a real layer on a sentence of one's own
    visitor = at_home()
    visitor.type("Type a text", TEXT)
    visitor.click(navigation.get_by_role("link", name="One pass"), "One pass")
    links.get_by_role("link", name="Step through").scroll_into_view_if_needed()
    visitor.click(links.get_by_role("link", name="Step through"), "Shapes")
    expect(page.get_by_text("Made now: 6. group by head")).to_be_in_viewport()
    expect(sentence(page, "Sentence")).to_have_value(TEXT)
    expect(panel(page, "step 6: queries")).to_be_in_viewport()
    drawn = f"Drawn: layer {first_opened().layer}; tokens 0 to 5 of 11; heads "
    expect(page.get_by_text(drawn)).to_be_visible()
    assert visitor.acts <= 4


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
    settled(page)  # a run that is left goes on writing its page's address
    page.go_back()
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", "4")
    settled(page)  # going on before the page is there is another way through the history
    assert page.url == f"{site.url}/heads?heads_layer=4"
    page.go_forward()
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()
    expect_parameter(page, "scaling_layer", "4")


def test_the_model_travels_to_pages_that_can_run_it(page: Page, site: Site):
    open_page(page, site, f"/word-pairs?word_pairs_model={DECODER}", "Word pairs")
    go(page, "Heads")
    expect_parameter(page, "heads_model", DECODER)
    expect(page.get_by_text("135M").first).to_be_visible()
    open_page(page, site, f"/ablate?ablate_model={ENCODER}", "Ablate")
    go(page, "Generate")
    expect(page.get_by_text("can't write text, so another model is used")).to_be_visible()


@pytest.mark.parametrize("presses_before", [0, 1])
def test_a_choice_goes_along_though_a_busy_server_never_ran_it(
    own_page: Page, site: Site, presses_before: int
):
    """Such a server puts two requests together, and keeps the values of the later one."""
    page = own_page
    open_page(page, site, "/heads?heads_layer=2", "Heads")
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
    layer = str(3 + presses_before)
    expect_parameter(page, "heads_layer", layer)
    page.wait_for_function("window.lost === 1")
    page.evaluate("window.sendAgain()")
    go(page, "Scaling")
    press(page.get_by_role("radio", name="3. A real head without its scale"), "Space")
    settled(page)
    expect(shown(page, "Layer")).to_have_attribute("aria-valuetext", layer)
    expect_parameter(page, "scaling_layer", layer)
