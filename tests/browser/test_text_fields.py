"""Test that the model reads exactly the text in the browser's text field."""

import urllib.parse

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser import Site
from tests.helpers.browser import open_page, press
from tests.helpers.bundled_models import FIRST_GPT2
from tests.helpers.visitors import wait_until_settled

TYPED = "one\r\ntwo\tthree\u2028four"
SHOWN = {
    "/heads?heads_model=" + FIRST_GPT2: ("Heads", "heads_text", "Sentence", "one two three four"),
    "/tokens?": ("Tokens", "tokens_text", "Text", "one\ntwo\tthree\u2028four"),
}


@pytest.mark.parametrize("address", SHOWN)
def test_enter_in_a_prefilled_field_changes_nothing(page: Page, site: Site, address: str):
    title, key, label, text = SHOWN[address]
    open_page(page, site, f"{address}&{urllib.parse.urlencode({key: TYPED})}", title)
    box = page.get_by_label(label, exact=True)
    expect(box).to_have_value(text)
    wait_until_settled(page)
    parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)
    assert parameters[key] == [text]
    displayed = page.locator("main [data-testid=stText], main figure")
    before = displayed.all_inner_texts()
    press(box, "End", "Control+Enter" if title == "Tokens" else "Enter")
    box.blur()  # hides the character counter
    wait_until_settled(page)
    expect(box).to_have_value(text)
    assert displayed.all_inner_texts() == before
