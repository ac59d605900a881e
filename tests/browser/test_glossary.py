"""The glossary in a real browser: a card where the pointer is, words by the keyboard, an entry."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import PHONE, open_page, press
from tests.helpers.glossary import GLOSSARY
from tests.helpers.visitors import settled

# Where the first letter of a marked word stands in the window, once it is marked.
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
    """Where a word of the page's prose is marked."""
    page.wait_for_function(PLACE, arg=word)
    found: dict[str, float] = page.evaluate(PLACE, word)
    return found


def sentence(name: str) -> str:
    term = GLOSSARY.named(name)
    assert term is not None
    return term.sentence


def test_a_term_is_explained_where_it_stands_and_in_its_entry(page: Page, site: Site):
    open_page(page, site, "/scaling", "Scaling")
    settled(page)
    before = page.locator(".stMain .stMarkdown").first.inner_html()
    at = place(page, "scores")
    page.mouse.move(at["x"], at["y"])
    card = page.locator("#term-card")
    expect(card.get_by_text(sentence("score"))).to_be_visible()
    expect(card.get_by_role("img")).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert box["y"] >= at["bottom"] or box["y"] + box["height"] <= at["top"]
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert page.locator(".stMain .stMarkdown").first.inner_html() == before

    press(page.get_by_text("Words on this page"), "Enter")
    link = page.locator(".page-words").get_by_role("link", name="Softmax")
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # the focus of the keyboard
    expect(link).to_be_focused()
    expect(card.get_by_text(sentence("softmax"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Glossary", level=1)).to_be_visible()
    entry = page.get_by_role("listitem").filter(
        has=page.get_by_role("heading", name="Softmax", exact=True)
    )
    expect(entry).to_be_focused()
    expect(entry).to_be_in_viewport()
    expect(page).to_have_url(re.compile(r"/glossary\?.*term=softmax"))
    entry.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Scaling", level=1)).to_be_visible()

    page.set_viewport_size(PHONE)
    settled(page)
    at = place(page, "softmax")
    page.mouse.click(at["x"], at["y"])
    expect(card).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
    page.mouse.click(at["x"], at["y"] - 30)  # elsewhere
    expect(card).to_be_hidden()
