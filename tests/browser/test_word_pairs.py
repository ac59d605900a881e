"""A question of the lectures with the keyboard, the swap, and a find opened as a head."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import (
    choose,
    choose_example,
    click,
    heatmap,
    metric_value,
    open_page,
    press,
)
from tests.helpers.bundled_models import ENCODER, attention
from ui.text.number_text import percent

ARTIST = "the artist painted the portrait of a woman with a brush"


def largest(query: str, key: str) -> str:
    """The largest weight of any head of the encoder, for two words that are one token each."""
    values = []
    for layer in range(6):
        for head in range(12):
            matrix, tokens = attention(ENCODER, ARTIST, layer, head)
            values.append(float(matrix[tokens.pieces.index(query), tokens.pieces.index(key)]))
    return percent(max(values))


def test_the_main_path(page: Page, site: Site):
    open_page(page, site, "/word-pairs", "Word pairs")
    on_a = metric_value(page, "Largest weight on A")
    choose_example(page, "woman: brush or portrait?")
    expect(page.get_by_text("“\u2068woman\u2069” gives at most")).to_be_visible()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
    expect(page).to_have_url(re.compile("word_pairs_query=woman"))
    expect(on_a).to_have_text(largest("woman", "brush"))
    press(page.get_by_role("button", name="Swap the first two"), "Enter")
    expect(page.get_by_text("“\u2068brush\u2069” gives at most")).to_be_visible()
    expect(on_a).to_have_text(largest("brush", "woman"))
    choose(page.get_by_role("combobox", name="Word A (key)"), "artist")
    expect(page.get_by_text("attention to A, “\u2068artist\u2069”")).to_be_visible()
    expect(on_a).to_have_text(largest("brush", "artist"))

    link = page.get_by_test_id("stPageLink").get_by_role("link", name=re.compile("L[0-9]H[0-9]"))
    name = (link.first.text_content() or "").strip()
    click(link.first)
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(heatmap(page, re.findall(r"L\d+H\d+", name)[0]).first).to_be_visible()
    words = "Query 11 “\u2068brush\u2069” and key 2 “\u2068artist\u2069”"
    expect(page.get_by_text(words)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
