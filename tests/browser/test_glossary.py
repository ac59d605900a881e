"""Test the glossary in a browser: cards for clicked terms, keyboard access, the page."""

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import PHONE, click, open_page, press
from tests.helpers.glossary import GLOSSARY
from tests.helpers.visitors import wait_until_settled

# The window position of the first letter of a marked word, once it's marked.
PLACE = """
(word) => {
  const marks = [...(CSS.highlights.get("term") ?? [])];
  const mark = marks.find((range) => range.toString().toLowerCase() === word);
  if (!mark) return null;
  const { left, top, bottom } = mark.getClientRects()[0];
  return { x: left + 2, y: (top + bottom) / 2, top, bottom };
}
"""


def place(page: Page, word: str) -> dict[str, float]:
    """Return the position of a marked word in the page's text."""
    page.wait_for_function(PLACE, arg=word)
    result: dict[str, float] = page.evaluate(PLACE, word)
    return result


def sentence(name: str) -> str:
    term = GLOSSARY.find(name)
    assert term is not None
    return term.sentence


def test_term_is_explained_in_a_card_and_in_its_entry(page: Page, site: Site):
    open_page(page, site, "/scaling", "Scaling")
    wait_until_settled(page)
    before = page.locator(".stMain .stMarkdown").first.inner_html()
    at = place(page, "scores")
    page.mouse.click(at["x"], at["y"])
    card = page.locator(".term-card")
    expect(card.get_by_text(sentence("score"))).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert box["y"] >= at["bottom"] or box["y"] + box["height"] <= at["top"]
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert page.locator(".stMain .stMarkdown").first.inner_html() == before

    press(page.get_by_text("Terms on this page"), "Enter")
    words = page.locator(".page-words")
    expect(words.get_by_text(sentence("softmax"))).to_be_visible()
    page.evaluate("window.loaded = true")
    press(words.get_by_role("link", name="Learn it: Ladder").first, "Enter")
    expect(page.get_by_role("heading", name="Ladder", level=1)).to_be_visible()
    assert page.evaluate("window.loaded")  # the site wasn't reloaded


def test_link_opens_an_entry_that_links_to_its_lesson(page: Page, site: Site):
    open_page(page, site, "/glossary?term=softmax", "Glossary")
    entry = page.locator(".glossary > li").first
    expect(entry.get_by_role("heading", name="Softmax", exact=True)).to_be_in_viewport()
    click(entry.get_by_role("link"))
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()

    page.set_viewport_size(PHONE)
    wait_until_settled(page)
    at = place(page, "softmax")
    page.mouse.click(at["x"], at["y"])
    card = page.locator(".term-card")
    expect(card).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
    page.mouse.click(at["x"], at["y"] - 30)  # outside the card
    expect(card).to_be_hidden()
