"""Test Word pairs in a browser: a lecture question by keyboard, the swap, opening a result."""

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
from tests.helpers.visitors import wait_until_settled

ARTIST = "the artist painted the portrait of a woman with a brush"


def test_main_path(page: Page, site: Site):
    open_page(page, site, "/word-pairs", "Word pairs")
    on_a = metric_value(page, "Largest weight on A")
    choose_example(page, "woman: brush or portrait?")
    expect(page.get_by_text("“\u2068woman\u2069” gives")).to_be_visible()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
    expect(page).to_have_url(re.compile("word_pairs_query=woman"))
    wait_until_settled(page)
    before = on_a.inner_text()
    press(page.get_by_role("button", name="Swap query and A"), "Enter")
    expect(page.get_by_text("“\u2068brush\u2069” gives")).to_be_visible()
    expect(on_a).not_to_have_text(before)
    choose(page.get_by_role("combobox", name="Word A (key)"), "artist")
    expect(page.get_by_text("attention to “\u2068artist\u2069”")).to_be_visible()

    link = page.get_by_test_id("stPageLink").get_by_role("link", name=re.compile("L[0-9]H[0-9]"))
    wait_until_settled(page)
    head = re.findall(r"L\d+H\d+", link.first.inner_text())[0]
    click(link.first)
    expect(page.get_by_role("heading", name="Heads", level=1)).to_be_visible()
    expect(heatmap(page, head).first).to_be_visible()
    words = "Query 11 “\u2068brush\u2069” and key 2 “\u2068artist\u2069”"
    expect(page.get_by_text(words)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(ARTIST)
