"""Models read exactly what the text field shows, whatever the characters."""

from collections.abc import Iterable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.gpt2 import Gpt2Bpe
from pretrained.tokenization.tokens import Tokens
from pretrained.tokenization.wordpiece import WordPiece
from tests.helpers.apptest import FRAME, open_whole_page

pytestmark = pytest.mark.usefixtures("bundled_weights")

# A single-line field can't show these: browsers drop line breaks and keep the others invisible.
UNSEEN = ("\r\n", "\r", "\n", "\t", "\v", "\f", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029")
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "cats", "sat", "on", "the", "warm")
# A single-line field, two of them, and a multiline one. All pages build their fields this way.
CASES = [
    ("pages/start/home/page.py", {}),
    ("pages/compare/side_by_side/page.py", {"side_by_side_two": "true"}),
    ("pages/learn/tokens/page.py", {}),
]


def fields(site: AppTest) -> list[Any]:
    """The text fields of a page that a link can fill."""
    boxes = [box for kind in ("text_input", "text_area") for box in site.get(kind)]
    return [box for box in boxes if box.proto.query_param_key]


def text_of(between: Iterable[str]) -> str:
    """The words, each followed by these characters."""
    return "".join(map("".join, zip(WORDS, between, strict=False)))


@pytest.fixture
def tokenized_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text passed to a tokenizer."""
    visible: list[str] = []
    for kind in (FastBpe, Gpt2Bpe, WordPiece):

        def encode(tokenizer: Any, text: str, encode: Any = kind.encode) -> Tokens:
            visible.append(text)
            tokens: Tokens = encode(tokenizer, text)
            return tokens

        monkeypatch.setattr(kind, "encode", encode)
    return visible


@pytest.mark.parametrize(("view", "query"), CASES)
def test_model_reads_what_the_field_shows(
    site: AppTest, tokenized_texts: list[str], view: str, query: dict[str, str]
):
    usual = open_whole_page(AppTest.from_file(FRAME, default_timeout=60), view, **query)
    results = {box.key: box.type for box in fields(usual)}
    assert results
    # All texts differ, because a repeated one would come from the cache.
    ends = {key: f" in {key}" for key in results}
    link = {key: text_of(UNSEEN) + end for key, end in ends.items()}
    tokenized_texts.clear()
    open_whole_page(site, view, **query, **link)
    assert not site.exception
    for box in fields(site):
        several = box.type == "text_area"
        visible = ("\n", "\n", *UNSEEN[2:]) if several else [" "] * len(UNSEEN)
        text = text_of(visible) + ends[box.key]
        assert box.value == text[: box.proto.max_chars or None]
        assert box.key == "find" or box.value in tokenized_texts, box.key
    brought = {text for text in tokenized_texts if any(end in text for end in ends.values())}
    assert brought <= {box.value for box in fields(site)}
    # Pressing Enter in an unchanged field.
    for box in fields(site):
        if not box.disabled:
            box.set_value(box.value)
    values = {box.key: box.value for box in fields(site)}
    site.run()
    assert {box.key: box.value for box in fields(site)} == values
