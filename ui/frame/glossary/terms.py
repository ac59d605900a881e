"""The terms of the glossary, as `terms.toml` lists them, checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("terms.toml")
MAX_WORDS = 30  # of a sentence


@dataclass(frozen=True)
class Term:
    """One term of the glossary.

    spellings: all ways to write it, its name among them, in lower case. page: the folder of the
    page that teaches it ("learn/scaling").
    """

    name: str
    part: str
    spellings: tuple[str, ...]
    sentence: str
    page: str


@dataclass(frozen=True)
class Glossary:
    """All terms in alphabetical order.

    passed_over: phrases that hold the word of a term in another sense. parts: of the list.
    """

    terms: tuple[Term, ...]
    passed_over: tuple[str, ...]
    parts: tuple[str, ...]

    def named(self, written: str) -> Term | None:
        """The term that is written so, in any of its spellings; None if there is none."""
        wanted = " ".join(written.lower().split())
        return next((term for term in self.terms if wanted in term.spellings), None)

    def with_text(self, text: str) -> tuple[Term, ...]:
        """The terms that hold this text in a spelling or in their sentence; all for no text."""
        wanted = " ".join(text.lower().split())
        return tuple(
            term
            for term in self.terms
            if any(wanted in place for place in (*term.spellings, term.sentence.lower()))
        )


def read(text: str, pages: Collection[str]) -> Glossary:
    """The glossary that a TOML text writes down; `pages`: the folders of all pages of the site.

    Raises: ValueError for an unknown page or part, a spelling of two terms, and a sentence that is
    too long or does not end with a full stop.
    """
    written = tomllib.loads(text)
    parts, terms = tuple(written["parts"]), []
    meant: dict[str, str] = {}  # by each spelling, the term
    for entry in written["term"]:
        name, sentence = entry["name"], entry["sentence"]
        spellings = tuple(map(str.lower, (name, *entry.get("spellings", ()))))
        for spelling in spellings:
            if spelling in meant:
                raise ValueError(f"“{spelling}” is written for {meant[spelling]} and for {name}")
            meant[spelling] = name
        if entry["page"] not in pages:
            raise ValueError(f"{name} is taught on {entry['page']}, which is no page")
        if entry["part"] not in parts:
            raise ValueError(f"{name} is in {entry['part']}, which is not among {parts}")
        if (n_words := len(re.findall(r"\S+", sentence))) > MAX_WORDS:
            raise ValueError(f"the sentence of {name} has {n_words} words, {MAX_WORDS} at most")
        if not sentence.endswith("."):
            raise ValueError(f"the sentence of {name} ends without a full stop: {sentence}")
        terms.append(Term(name, entry["part"], spellings, sentence, entry["page"]))
    terms.sort(key=lambda term: term.name.lower())
    return Glossary(tuple(terms), tuple(map(str.lower, written["passed_over"])), parts)


@cache
def glossary(pages: frozenset[str]) -> Glossary:
    """The glossary of the site, whose pages lie in these folders."""
    return read(FILE.read_text(encoding="utf-8"), pages)
