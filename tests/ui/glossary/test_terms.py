"""Test the glossary terms: their pages exist, and no spelling is ambiguous."""

from collections.abc import Callable

import pytest

from ui.frame.glossary import terms

ONE = """
parts = ["Words"]
passed_over = ["loss shapes"]
[[term]]
name = "Loss"
part = "Words"
spellings = ["losses"]
sentence = "One number that says how badly the model guessed."
page = "learn/block"
"""


def test_term_is_found_by_every_spelling():
    glossary = terms.read(ONE, ["learn/block"])
    (loss,) = glossary.terms
    assert (glossary.find(" LOSSES "), glossary.find("Loss")) == (loss, loss)
    assert glossary.find("los") is None
    assert glossary.search("  How  BADLY ") == (loss,)
    assert glossary.search("x") == ()


MISTAKES: dict[str, Callable[[str], str]] = {
    "learn/blocks": lambda text: text.replace("learn/block", "learn/blocks"),
    "Tables": lambda text: text.replace('part = "Words"', 'part = "Tables"'),
    "losses.*Loss.*Losses": lambda text: (
        text + text[text.index("[[term]]") :].replace('"Loss"', '"Losses"')
    ),
}


@pytest.mark.parametrize("named", MISTAKES)
def test_invalid_glossary_is_rejected(named: str):
    with pytest.raises(ValueError, match=named):
        terms.read(MISTAKES[named](ONE), ["learn/block"])
