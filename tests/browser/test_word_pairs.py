"""A question of the lectures with the keyboard alone, the swap, and a find opened as a head."""

import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose,
    choose_example,
    click,
    heatmap,
    metric_value,
    open_page,
    open_whole_page,
    press,
    type_text,
)
from tests.helpers.bundled_models import ENCODER, attention
from ui.text.number_text import percent

ARTIST = "the artist painted the portrait of a woman with a brush"


def largest_on_a(page: Page) -> Locator:
    return metric_value(page, "Largest weight on A")


def largest(query: str, key: str) -> float:
    """The largest weight of any head of the encoder, for two words that are one token each."""
    values = []
    for layer in range(6):
        for head in range(12):
            matrix, tokens = attention(ENCODER, ARTIST, layer, head)
            values.append(float(matrix[tokens.pieces.index(query), tokens.pieces.index(key)]))
    return max(values)


def test_a_question_asked_and_turned_round_with_the_keyboard(page: Page, site: Site):
    open_page(page, site, "/word-pairs", "Word pairs")
    expect(page.get_by_text("The code that computed these numbers")).to_be_visible()
    choose_example(page, "woman: brush or portrait?")
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
    expect(page.get_by_text("“\u2068woman\u2069” gives")).to_be_visible()
    expect(page).to_have_url(re.compile("word_pairs_query=woman"))
    expect(largest_on_a(page)).to_have_text(percent(largest("woman", "brush")))
    press(page.get_by_role("button", name="Swap query and A"), "Enter")
    expect(page.get_by_text("“\u2068brush\u2069” gives")).to_be_visible()
    expect(largest_on_a(page)).to_have_text(percent(largest("brush", "woman")))
    # the question of the lectures about this sentence begins with brush: not in the address
    expect(page).to_have_url(re.compile("word_pairs_a=woman&word_pairs_b=portrait"))


def test_a_sentence_of_one_s_own_and_a_word_by_the_keyboard(page: Page, site: Site):
    open_page(page, site, "/word-pairs", "Word pairs")
    type_text(page, "Sentence", ARTIST)
    expect(page.get_by_text("“\u2068brush\u2069” gives")).to_be_visible()
    box = page.get_by_role("combobox", name="Word A (key)")
    choose(box, "portrait")
    expect(page.get_by_text("attention to “\u2068portrait\u2069”")).to_be_visible()
    expect(largest_on_a(page)).to_have_text(percent(largest("brush", "portrait")))


def test_a_find_opens_as_a_head(page: Page, site: Site):
    open_whole_page(page, site, "/word-pairs", "Word pairs")
    charts = page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")
    expect(charts.nth(3)).to_be_visible()
    click(page.get_by_test_id("stPageLink").get_by_role("link", name="L3H1"))
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(heatmap(page, "L3H1").first).to_be_visible()
    expect(page).to_have_url(re.compile("heads_layer=3.*heads_head=1|heads_head=1.*heads_layer=3"))
    pair = re.compile("Query 10 “\u2068it\u2069” and key 2 “\u2068animal\u2069” in .*, L3H1")
    expect(page.get_by_text(pair)).to_be_visible()


def test_a_find_of_a_sentence_of_one_s_own_opens_its_pair(page: Page, site: Site):
    open_page(page, site, f"/word-pairs?word_pairs_text={quote(ARTIST)}", "Word pairs")
    link = page.get_by_test_id("stPageLink").get_by_role("link", name=re.compile("L[0-9]H[0-9]"))
    click(link.first)
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    words = "Query 11 “\u2068brush\u2069” and key 2 “\u2068artist\u2069”"
    expect(page.get_by_text(words)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
