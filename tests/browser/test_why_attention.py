"""Test Why attention in a browser: a sentence, the controls, the link."""

import re

from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import SENTENCE, metric_value, open_whole_page, set_slider, type_text
from tests.helpers.visitors import wait_until_settled


def test_main_path(page: Page, site: Site):
    open_whole_page(page, site, "/why-attention", "Why attention")
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(4)
    type_text(page, "Sentence", SENTENCE)
    expect(metric_value(page, "Numbers in the sentence")).to_contain_text("8 × 16 = 128")
    set_slider(page, "Numbers in the state", 0, -2)  # 32 -> 8
    expect(metric_value(page, "Numbers in the last state")).to_contain_text("8")
    first_word = metric_value(page, "Word 0 in the GRU")
    wait_until_settled(page)
    forgotten = first_word.inner_text()
    set_slider(page, "Hold", 0, 8)  # 0 -> 4
    expect(page).to_have_url(re.compile("why_attention_hold=4"))
    expect(first_word).not_to_have_text(forgotten)
    wait_until_settled(page)
    remembered = first_word.inner_text()
    page.reload()
    expect(first_word).to_have_text(remembered)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)
