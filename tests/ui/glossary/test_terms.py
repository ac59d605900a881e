"""The list of terms: every sentence is short and easy, every page exists, no spelling means two."""

import re
from collections.abc import Callable

import pytest

from tests.helpers.glossary import GLOSSARY
from ui.frame.glossary import terms
from ui.frame.sections import TITLES

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


def test_there_are_about_sixty_terms_in_alphabetical_order():
    names = [term.name.lower() for term in GLOSSARY.terms]
    assert 55 <= len(names) <= 80
    assert names == sorted(names)
    assert {term.part for term in GLOSSARY.terms} == set(GLOSSARY.parts)
    assert {term.page for term in GLOSSARY.terms} <= set(TITLES)


@pytest.mark.parametrize("term", GLOSSARY.terms, ids=lambda term: term.name)
def test_a_sentence_is_short_and_ends(term: terms.Term):
    assert len(term.sentence.split()) <= 30
    assert re.fullmatch(r"[A-Z][^<>`*]*\.", term.sentence)


def test_what_is_passed_over_holds_the_word_of_a_term():
    for phrase in GLOSSARY.passed_over:
        runs = [phrase, *phrase.split(), " ".join(phrase.split()[-2:])]
        assert any(GLOSSARY.named(run) for run in runs)


def test_a_term_is_found_by_every_spelling():
    glossary = terms.read(ONE, ["learn/block"])
    (loss,) = glossary.terms
    assert (glossary.named(" LOSSES "), glossary.named("Loss")) == (loss, loss)
    assert glossary.named("los") is None
    assert [glossary.with_text(text) for text in ("", "oss", "  How  BADLY ", "x")] == [
        *[(loss,)] * 3,
        (),
    ]


MISTAKES: dict[str, Callable[[str], str]] = {
    "learn/blocks, which is no page": lambda text: text.replace("learn/block", "learn/blocks"),
    "is in Tables, which is not among": lambda text: text.replace(
        'part = "Words"', 'part = "Tables"'
    ),
    "“losses” is written for Loss and for Losses": lambda text: (
        text + text[text.index("[[term]]") :].replace('"Loss"', '"Losses"')
    ),
    "has 38 words, 30 at most": lambda text: text.replace("One number", "One " * 30 + "number"),
    "ends without a full stop": lambda text: text.replace("guessed.", "guessed"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_in_the_list_is_refused(message: str):
    with pytest.raises(ValueError, match=message):
        terms.read(MISTAKES[message](ONE), ["learn/block"])
