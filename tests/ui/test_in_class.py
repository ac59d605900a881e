"""The row for teachers: what it says of sites that may embed, and a visitor's text in it."""

import re

import pytest

from ui.frame import in_class


def test_without_a_site_it_says_what_to_set():
    html = in_class.row({}, ())
    assert "No other site may show a picture of this one yet." in html
    assert in_class.EMBED_VARIABLE in html


def test_with_sites_it_names_them():
    html = in_class.row({}, ("https://moodle.example.org", "http://b.example:8080"))
    assert "https://moodle.example.org http://b.example:8080." in html
    assert "No other site" not in html


@pytest.mark.parametrize(
    "text", ['"><img src=x onerror=alert(1)>', "</div><script>alert(1)</script>", "\u202ertl & '\""]
)
def test_a_sentence_stays_inside_its_attribute(text: str):
    usual, hostile = in_class.row({"sentence": "a"}, ()), in_class.row({"sentence": text}, ())
    outside = re.compile(r'data-facts="[^"]*"')
    assert outside.sub("", usual) == outside.sub("", hostile)
    assert "<" not in outside.findall(hostile)[0]


def test_the_caption_says_the_model_and_the_sentence():
    assert in_class.caption({}) == ""
    said = in_class.caption({"model": "SmolLM2", "name": "s", "sentence": "It rains"})
    assert said == "Model: SmolLM2. Sentence: \u2068It rains\u2069"
    assert len(in_class.caption({"sentence": "x" * 10_000})) < 250
