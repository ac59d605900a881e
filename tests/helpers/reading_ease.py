"""How easily a passage reads: Flesch's formula of 1948, on the English sentences of a page."""

import re
from collections.abc import Collection, Iterator

from streamlit.testing.v1 import AppTest

EASY = 60.0  # plain English, as pupils of 13 to 15 read it
FEWEST_WORDS = 15  # of a passage: fewer say nothing of its sentences

_VOWELS = re.compile("[aeiouy]+")
_SPOKEN_ENDING = re.compile("(?:[sxzcg]|ch|sh|t|d)e[sd]$")  # "es" and "ed" that are syllables
_NOT_READ = re.compile(r"`[^`]*`|\$[^$]*\$|^\s*-\s", re.MULTILINE)
_MARKS = re.compile(r"[*_#]|:small\[|\]|\([^)\s]*\)")


def passages(site: AppTest) -> Iterator[str]:
    """The texts of a page that are long enough, one after another, without marks and code."""
    for element in (*site.markdown, *site.text):
        passage = _MARKS.sub(" ", _NOT_READ.sub(" ", element.value))
        if len(_words(passage)) >= FEWEST_WORDS:
            yield passage


def reading_ease(passage: str, terms: Collection[str] = ()) -> float:
    """Flesch's reading ease: 100 is very easy, 60 plain, 30 hard.

    terms: words of the subject, in lower case, which have to be learned and are not counted.
    Raises: ValueError for a passage without words.
    """
    parts = re.split(r"[.!?:;]+(?:\s|$)|\n+", passage)
    sentences = [part for part in parts if _words(part)]
    words = [word for word in _words(passage) if word.lower() not in terms]
    if not words:
        raise ValueError("a passage without words")
    n_syllables = sum(map(syllables, words))
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * n_syllables / len(words)


def syllables(word: str) -> int:
    """How many syllables an English word has, about: groups of vowels, without a silent e."""
    word = word.lower()
    count = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee", "ye"))
    silent |= word.endswith(("es", "ed")) and not _SPOKEN_ENDING.search(word)
    return max(count - silent, 1)


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z][A-Za-z'’]+", text)
