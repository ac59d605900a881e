"""The Glossary page: its parts, its search and links to entries."""

import html
import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.helpers.apptest import messages, open_page, open_whole_page
from tests.helpers.glossary import GLOSSARY

VIEW = "pages/teaching/glossary/page.py"
PART = "glossary_part"


def entry_names(site: AppTest) -> list[str]:
    """The entry names on the page, in order."""
    assert not site.exception
    return [html.unescape(name) for name in re.findall("<h2>(.*?)</h2>", cards(site))]


def cards(site: AppTest) -> str:
    return "".join(e.proto.body for e in site.get("html") if "<ul" in e.proto.body)


def open_entries(site: AppTest) -> list[str]:
    return re.findall("<li class=opened><h2>(.*?)</h2>", cards(site))


def part_terms(part: str) -> list[str]:
    return [term.name for term in GLOSSARY.terms if term.part == part]


def test_first_part_by_default_and_all_on_request(site: AppTest):
    open_page(site, VIEW)
    assert entry_names(site) == part_terms(GLOSSARY.parts[0])
    assert re.search(
        "<h2>Dot product</h2><p>Multiply two vectors .*?"
        '<a href="similarity" data-inside [^>]*>Similarity</a>',
        cards(site),
    )
    assert not open_entries(site)
    assert not site.get("page_link")  # The glossary has no next page.


def test_entries_are_in_alphabetical_order(site: AppTest):
    open_whole_page(site, VIEW)
    assert entry_names(site) == [term.name for term in GLOSSARY.terms]


@pytest.mark.usefixtures("bundled_weights")
def test_one_pass_skips_the_glossary(site: AppTest):
    open_page(site, "pages/start/one_pass/page.py")
    assert site.get("page_link")[-1].proto.label == "Next: Tokens"


def test_link_opens_its_entry_once(site: AppTest):
    open_page(site, VIEW, term="value  VECTORS")
    part = GLOSSARY.find("value").part
    assert site.button_group(PART).value == part
    assert sorted(entry_names(site), key=str.lower) == part_terms(part)
    assert open_entries(site) == entry_names(site)[:1] == ["Value"]
    site.button_group(PART).set_value("Training").run()
    assert entry_names(site) == part_terms("Training")
    site.query_params["term"] = "loss"
    site.query_params.pop(PART, None)
    site.run()
    assert open_entries(site) == ["Loss"]


def test_search_covers_names_and_definitions(site: AppTest):
    open_page(site, VIEW, find="KEYS and values")
    expected = [term.name for term in GLOSSARY.search("keys and values")]
    assert "KV cache" in expected
    assert entry_names(site) == expected
    assert not site.get("button_group")
    site.text_input("find").set_value("xyzzy").run()
    assert entry_names(site) == []
    assert any("No entry contains “xyzzy”" in message for message in messages(site))
    assert site.text_input("find").value == "xyzzy"


HOSTILE = "<img src=x onerror=alert(1)> ![i](http://example.invalid/x.png) ../../etc"


@pytest.mark.parametrize("name", ["term", "find"])
@pytest.mark.parametrize("value", [HOSTILE, "x" * 10_000, "\u202e\x00", "𝔘 שלום"])
def test_no_match_message_is_plain_text(site: AppTest, name: str, value: str):
    open_page(site, VIEW, **{name: value})
    assert not site.exception
    assert len(messages(site)) == 1
    for element in (*site.markdown, *site.warning):
        assert "<img" not in element.value.replace("\\<img", "")
        assert "://" not in element.value
        assert len(element.value) < 1_000
    if name == "term":
        assert entry_names(site) == part_terms(GLOSSARY.parts[0])
