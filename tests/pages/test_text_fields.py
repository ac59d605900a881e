"""A model reads what a text field shows, whatever characters a link or another page brings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.learn.cheaper_models import rewards
from pretrained.tokenization.bpe import FastBpe
from pretrained.tokenization.gpt2 import Gpt2Bpe
from pretrained.tokenization.tokens import Tokens
from pretrained.tokenization.wordpiece import WordPiece
from tests.helpers.apptest import FRAME, VIEWS, open_whole_page
from tests.helpers.bundled_models import FIRST_GPT2

pytestmark = pytest.mark.usefixtures("bundled_weights")

# what a box of one line cannot show: browsers drop line breaks, and keep the others unseen
UNSEEN = ("\r\n", "\r", "\n", "\t", "\v", "\f", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029")
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "cats", "sat", "on", "the", "warm")
# another part of the page, with a text field of its own, or a smaller model
OTHERWISE = {
    "cheaper_models": {"cheaper_models_model": FIRST_GPT2, "cheaper_models_part": rewards.NAME},
    "side_by_side": {"side_by_side_two": "true"},
    "shapes": {"shapes_of": FIRST_GPT2},
}
# what is read only once a button was pressed, or by no tokenizer
READ_LATER = {"block_text", "cheaper_models_word", "find", "generate_prompt", "ladder_matrix",
              "one_pass_off", "scaling_logits", "shapes_second", "shapes_text", "timing_prompt",
              "two_networks_text", "why_attention_text"}  # fmt: skip


def fields(site: AppTest) -> list[Any]:
    """The text fields of a page that a link can fill."""
    boxes = [box for kind in ("text_input", "text_area") for box in site.get(kind)]
    return [box for box in boxes if box.proto.query_param_key]


def text_of(between: Iterable[str]) -> str:
    """The words with these characters behind them."""
    return "".join(map("".join, zip(WORDS, between, strict=False)))


CASES = [(view, {}) for view in VIEWS if "cheaper_models" not in view] + [
    (view, OTHERWISE[name]) for view in VIEWS if (name := Path(view).parent.name) in OTHERWISE
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that a tokenizer was given."""
    seen: list[str] = []
    for kind in (FastBpe, Gpt2Bpe, WordPiece):

        def encode(tokenizer: Any, text: str, encode: Any = kind.encode) -> Tokens:
            seen.append(text)
            tokens: Tokens = encode(tokenizer, text)
            return tokens

        monkeypatch.setattr(kind, "encode", encode)
    return seen


@pytest.mark.parametrize(("view", "query"), CASES)
def test_a_model_reads_what_the_field_shows(
    site: AppTest, reads: list[str], view: str, query: dict[str, str]
):
    usual = open_whole_page(AppTest.from_file(FRAME, default_timeout=60), view, **query)
    found = {box.key: box.type for box in fields(usual)}
    if not found:
        pytest.skip("no text field")
    # no two texts are the same, or the second one would be read from a cache
    ends = {key: f" in {key}" for key in found}
    link = {key: text_of(UNSEEN) + end for key, end in ends.items()}
    reads.clear()
    open_whole_page(site, view, **query, **link)
    assert not site.exception
    for box in fields(site):
        several = box.type == "text_area"
        seen = ("\n", "\n", *UNSEEN[2:]) if several else [" "] * len(UNSEEN)
        text = text_of(seen) + ends[box.key]
        assert box.value == text[: box.proto.max_chars or None]
        if box.key not in READ_LATER:
            assert box.value in reads, box.key
    brought = {text for text in reads if any(end in text for end in ends.values())}
    assert brought <= {box.value for box in fields(site)}
    # Enter in a field that nobody touched
    for box in fields(site):
        if not box.disabled:
            box.set_value(box.value)
    values = {box.key: box.value for box in fields(site)}
    site.run()
    assert {box.key: box.value for box in fields(site)} == values
