"""The content words of a text, and the position of a word in another text.

We don't use a tagger: English pronouns and function words come from lists, and every other word is
a content word. In other languages, all words count as content words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pretrained import Tokens

Role = Literal["pronoun", "content", "other"]
Span = tuple[int, int]  # a half-open range of characters

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_PRONOUNS = "he him she her it they them who himself herself itself themselves"
_FUNCTION_WORDS = """
    a about after all also am an and any are as at be because been before being between both but by
    can could did didn't do does doesn't don't down during each few for from had has hasn't have
    having here hers his how i if in into is isn't it's its just may me might more most must my no
    nor not of off on once only or other our out over own same shall should so some such t than that
    the their then there these this those through to too under until up us very was wasn't we were
    what when where which while whom why will with would you your s d ll m re ve
"""
_ROLES: dict[str, Role] = {
    **dict.fromkeys(_FUNCTION_WORDS.split(), "other"),
    **dict.fromkeys(_PRONOUNS.split(), "pronoun"),
}


@dataclass(frozen=True)
class _Word:
    """A word of a text with its position."""

    text: str
    span: Span

    @property
    def role(self) -> Role:
        """Whether it's a pronoun, a content word or a function word ("other")."""
        return _ROLES.get(self.text.casefold().replace("’", "'"), "content")


def _words(text: str) -> list[_Word]:
    return [_Word(match[0], match.span()) for match in _WORD.finditer(text)]


def _word_at(words: list[_Word], span: Span) -> _Word | None:
    """The first word that overlaps a range; None if no word does."""
    start, end = span
    return next((w for w in words if max(w.span[0], start) < min(w.span[1], end)), None)


def roles(tokens: Tokens) -> tuple[Role, ...]:
    """The role of each token's word; "other" for special tokens and punctuation."""
    words = _words(tokens.text)
    results = [_word_at(words, span) for span in tokens.spans]
    return tuple(
        "other" if special or word is None else word.role
        for word, special in zip(results, tokens.special, strict=True)
    )


def default_token(tokens: Tokens) -> int:
    """The token selected by default: the last pronoun, content word or ordinary token."""
    kinds = roles(tokens)
    for kind in ("pronoun", "content"):
        if kind in kinds:
            return max(i for i, other in enumerate(kinds) if other == kind)
    ordinary = [i for i, special in enumerate(tokens.special) if not special]
    return (ordinary or [len(tokens) - 1])[-1]


def same_word(before: str, span: Span, after: str) -> Span | None:
    """Find the word at `span` of one text in another text.

    If the same word occurs several times, the first occurrence maps to the first, the second to the
    second and so on. If it doesn't occur, the last word with the same role (pronoun or content
    word) is used. None if there is no such word, or if the range contains no word.
    """
    words, others = _words(before), _words(after)
    word = _word_at(words, span)
    if word is None:
        return None
    alike = [w for w in others if w.text.casefold() == word.text.casefold()]
    if alike:
        earlier = sum(
            w.text.casefold() == word.text.casefold() and w.span < word.span for w in words
        )
        return alike[min(earlier, len(alike) - 1)].span
    same_role = [w for w in others if w.role == word.role != "other"]
    return same_role[-1].span if same_role else None


def distinct_content(tokens: Tokens, *, exclude: int) -> list[int]:
    """The first token of each content word, except the word that contains token `exclude`."""
    words, kinds = _words(tokens.text), roles(tokens)
    own, visible, result = _word_at(words, tokens.spans[exclude]), set[Span](), []
    for token, kind in enumerate(kinds):
        word = _word_at(words, tokens.spans[token])
        if kind != "content" or word is None or word == own or word.span in visible:
            continue
        visible.add(word.span)
        result.append(token)
    return result
