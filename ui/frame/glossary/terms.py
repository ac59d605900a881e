"""Read and check the glossary's terms in `terms.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("terms.toml")
MAX_WORDS = 30  # of a definition


@dataclass(frozen=True)
class Term:
    """One term of the glossary.

    spellings: all ways to write it, including its name, in lowercase. page: the folder of the page
    that teaches it ("learn/scaling").
    """

    name: str
    part: str
    spellings: tuple[str, ...]
    sentence: str
    page: str


@dataclass(frozen=True)
class Glossary:
    """All terms in alphabetical order.

    excluded_phrases: phrases that contain a term's word in another sense. parts: the parts of the
    list.
    """

    terms: tuple[Term, ...]
    excluded_phrases: tuple[str, ...]
    parts: tuple[str, ...]

    def find(self, spelling: str) -> Term | None:
        """The term with this spelling, or None."""
        query = " ".join(spelling.lower().split())
        return next((term for term in self.terms if query in term.spellings), None)

    def search(self, text: str) -> tuple[Term, ...]:
        """The terms with this text in a spelling or the definition; all terms for empty text."""
        query = " ".join(text.lower().split())
        return tuple(
            term
            for term in self.terms
            if any(query in place for place in (*term.spellings, term.sentence.lower()))
        )


def read(text: str, pages: Collection[str]) -> Glossary:
    """Parse a glossary in TOML. pages: the folders of all pages of the site.

    Raises: ValueError for an unknown page or part, a spelling used by two terms, or a definition
    that is too long or doesn't end with a period.
    """
    written = tomllib.loads(text)
    parts, terms = tuple(written["parts"]), []
    meant: dict[str, str] = {}  # spelling -> name of the term
    for entry in written["term"]:
        name, sentence = entry["name"], entry["sentence"]
        spellings = tuple(map(str.lower, (name, *entry.get("spellings", ()))))
        for spelling in spellings:
            if spelling in meant:
                raise ValueError(f"“{spelling}” is a spelling of both {meant[spelling]} and {name}")
            meant[spelling] = name
        if entry["page"] not in pages:
            raise ValueError(f"{name} has the page {entry['page']}, which doesn't exist")
        if entry["part"] not in parts:
            raise ValueError(f"{name} has the part {entry['part']}, which isn't one of {parts}")
        if (n_words := len(re.findall(r"\S+", sentence))) > MAX_WORDS:
            raise ValueError(
                f"the definition of {name} has {n_words} words; the limit is {MAX_WORDS}"
            )
        if not sentence.endswith("."):
            raise ValueError(f"the definition of {name} doesn't end with a period: {sentence}")
        terms.append(Term(name, entry["part"], spellings, sentence, entry["page"]))
    terms.sort(key=lambda term: term.name.lower())
    return Glossary(tuple(terms), tuple(map(str.lower, written["passed_over"])), parts)


@cache
def glossary(pages: frozenset[str]) -> Glossary:
    """The site's glossary. pages: the folders of all pages."""
    return read(FILE.read_text(encoding="utf-8"), pages)
