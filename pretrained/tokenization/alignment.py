"""Which tokens of two tokenizations belong together: by the characters that they hold.

Two models cut a text differently, so their attention maps have other rows and columns. What they
share are the places where both cut: between two such places lies a unit, made of one or more tokens
on each side. Words are coarser units, the same for every tokenizer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import regex

from pretrained.tokenization.tokens import Tokens, text_labels

Groups = tuple[tuple[int, ...], ...]

_APOSTROPHES = "'\u2019"
# What a reader takes for one character: Unicode's extended grapheme clusters, of annex 29,
# https://www.unicode.org/reports/tr29/.
_CHARACTERS = regex.compile(r"\X")


@dataclass(frozen=True)
class AlignedUnit:
    """Tokens of both sides that hold the same characters: their indices, in order.

    label_a, label_b: the unit's text on each side, printable and unique within its side.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    label_a: str
    label_b: str


@dataclass(frozen=True)
class Alignment:
    """The units that two tokenizations share, and the groups of tokens that have no partner.

    Every token is in exactly one unit, or in one group of `only_a` or `only_b`. Both are in the
    order of the text.
    """

    units: tuple[AlignedUnit, ...]
    only_a: Groups
    only_b: Groups

    def unit_of(self, side: str, n_tokens: int) -> tuple[int, ...]:
        """For each token of side "a" or "b" the number of its unit; -1 for one without a partner.

        Raises: ValueError for another side, or for fewer tokens than the units hold.
        """
        if side not in ("a", "b"):
            raise ValueError(f"a side is 'a' or 'b', not {side!r}")
        places = [-1] * n_tokens
        for number, unit in enumerate(self.units):
            for token in unit.a if side == "a" else unit.b:
                if token >= n_tokens:
                    raise ValueError(f"unit {number} holds token {token} of {n_tokens}")
                places[token] = number
        return tuple(places)


def words(tokens: Tokens) -> Groups:
    """Groups of token indices that make a word: every token is in exactly one group.

    A word is a run of letters, digits and marks, with apostrophes inside it ("didn't"). A Chinese
    character is a word by itself, as BERT's tokenizer has it; so is every other visible character
    (punctuation, an emoji with all that is joined to it). White space belongs to the word after it,
    at the end of the text to the word before. A token that holds parts of two words makes one of
    them; a token that the tokenizer added ([CLS]) is a group of its own.
    """
    sets = _Sets(len(tokens))
    segments = _segments(tokens.text)
    first_of: dict[int, int] = {}  # segment -> the first token that holds a part of it
    own = _covering(tokens)
    text_tokens = [n for n, (start, end) in enumerate(own) if end > start]
    for token in text_tokens:
        for segment in _visible_segments(own[token], segments):
            sets.join(token, first_of.setdefault(segment, token))
    blank = {n for n in text_tokens if not _visible_segments(own[n], segments)}
    for place, token in enumerate(text_tokens):
        if token in blank:
            follows = text_tokens[place + 1 : place + 2] or text_tokens[max(place - 1, 0) :][:1]
            sets.join(token, follows[0])
    return sets.groups()


def aligned(
    a: Tokens, b: Tokens, groups_a: Groups | None = None, groups_b: Groups | None = None
) -> Alignment:
    """The smallest groups of characters whose borders are token borders on both sides.

    groups_a, groups_b: tokens that shall not be parted (`words`), each token by itself if absent.
    For the same text the characters of both sides are the same. Otherwise words that both texts
    have in the same order are, whatever their case (difflib.SequenceMatcher); tokens that hold a
    visible character of other words have no partner. Tokens that the tokenizers added ([CLS])
    are partners where they have the same text and stand at the same end.
    """
    same_of = _same_characters(a.text, b.text)
    spans_a, spans_b = _covering(a), _covering(b)
    offset = len(a.text)  # the characters of b that a does not have come after those of a
    at_a = [list(range(*span)) for span in spans_a]
    at_b = [[same_of.get(c, offset + c) for c in range(*span)] for span in spans_b]
    characters = _Sets(offset + len(b.text))
    for held in (at_a, at_b):
        for places in held:
            characters.join_all(places)
    for held, groups in ((at_a, groups_a), (at_b, groups_b)):
        for group in groups or ():
            characters.join_all([place for token in group for place in held[token]])

    # characters that only one text has, white space aside, make their group one without a partner
    shared = set(same_of.values())
    alone = {i for i, c in enumerate(a.text) if _is_visible(c) and i not in shared}
    alone |= {offset + i for i, c in enumerate(b.text) if _is_visible(c) and i not in same_of}
    spoilt = {characters.find(place) for place in alone}

    holds_a, holds_b = _by_set(at_a, characters), _by_set(at_b, characters)
    pairs = [
        (holds_a[root], holds_b[root]) for root in holds_a if root in holds_b and root not in spoilt
    ]
    pairs = sorted(pairs + _added_pairs(a, b, spans_a, spans_b))
    labels_a = group_labels(a, [pair[0] for pair in pairs])
    labels_b = group_labels(b, [pair[1] for pair in pairs])
    units = tuple(
        AlignedUnit(left, right, *labels)
        for (left, right), *labels in zip(pairs, labels_a, labels_b, strict=True)
    )
    taken_a = {token for unit in units for token in unit.a}
    taken_b = {token for unit in units for token in unit.b}
    return Alignment(
        units, _rest(len(a), taken_a, holds_a.values()), _rest(len(b), taken_b, holds_b.values())
    )


def aligned_words(a: Tokens, b: Tokens) -> Alignment:
    """`aligned`, with words that are not parted: units are words, or runs of them."""
    return aligned(a, b, words(a), words(b))


def group_labels(tokens: Tokens, groups: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """The text that each group of tokens holds, printable, unique, without white space around it.

    A group of added tokens is named by their pieces.
    """
    texts = []
    spans = _covering(tokens)
    for group in groups:
        held = [spans[token] for token in group if spans[token][1] > spans[token][0]]
        if held:
            text = tokens.text[min(s for s, _ in held) : max(e for _, e in held)]
            text = text.strip() or text
        else:
            text = "".join(tokens.pieces[token] for token in group)
        texts.append(text)
    return text_labels(texts)


def word_of(tokens: Tokens, token: int) -> str | None:
    """The word that a token belongs to, as `group_labels` names it.

    None for white space and for a token with a meaning of its own.
    Raises: IndexError for a token that is not there.
    """
    start, end = tokens.spans[token]
    if tokens.special[token] or not tokens.text[start:end].strip():
        return None
    groups = words(tokens)
    labels = group_labels(tokens, groups)
    return next(label for group, label in zip(groups, labels, strict=True) if token in group)


class _Sets:
    """Disjoint sets of the numbers 0 .. n - 1 (union-find); the smallest member names a set."""

    def __init__(self, n: int) -> None:
        self._above = list(range(n))

    def find(self, i: int) -> int:
        while self._above[i] != i:
            self._above[i] = self._above[self._above[i]]
            i = self._above[i]
        return i

    def join(self, i: int, j: int) -> None:
        low, high = sorted((self.find(i), self.find(j)))
        self._above[high] = low

    def join_all(self, members: Sequence[int]) -> None:
        for member in members[1:]:
            self.join(members[0], member)

    def groups(self) -> Groups:
        members_of: dict[int, list[int]] = {}
        for i in range(len(self._above)):
            members_of.setdefault(self.find(i), []).append(i)
        return tuple(map(tuple, members_of.values()))


def _by_set(held: Sequence[Sequence[int]], characters: _Sets) -> dict[int, tuple[int, ...]]:
    """The tokens of each set of characters; tokens without characters are in none."""
    tokens_of: dict[int, list[int]] = {}
    for token, places in enumerate(held):
        if places:
            tokens_of.setdefault(characters.find(places[0]), []).append(token)
    return {root: tuple(tokens) for root, tokens in tokens_of.items()}


def _rest(n_tokens: int, paired: set[int], groups: Iterable[tuple[int, ...]]) -> Groups:
    """The groups of tokens without a partner, in the order of the text; added tokens are alone."""
    loose = [group for group in groups if group[0] not in paired]
    grouped = paired.union(*loose)
    return tuple(sorted([*loose, *((n,) for n in range(n_tokens) if n not in grouped)]))


def _added_pairs(
    a: Tokens, b: Tokens, spans_a: Sequence[tuple[int, int]], spans_b: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Tokens that both tokenizers added: those of the same text, counted from the same end."""
    empty_a = [n for n, (start, end) in enumerate(spans_a) if start == end]
    empty_b = [n for n, (start, end) in enumerate(spans_b) if start == end]
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for at_start in (True, False):
        # before the text or behind it: an empty span at its very beginning or end
        left = [n for n in empty_a if _leads(n, spans_a) is at_start]
        right = [n for n in empty_b if _leads(n, spans_b) is at_start]
        for i, j in zip(left, right, strict=False):
            if a.pieces[i] == b.pieces[j]:
                pairs.append(((i,), (j,)))
    return pairs


def _leads(token: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether an added token stands before the text; in an empty text only the first token does."""
    text = [n for n, (start, end) in enumerate(spans) if end > start]
    return token < (text[0] if text else 1)


def _covering(tokens: Tokens) -> list[tuple[int, int]]:
    """The spans of all tokens, each made longer by the marks behind it that no token holds.

    An encoder that strips accents leaves the mark of a decomposed "é" to no token; it belongs to
    the token of its letter.
    """
    held = {c for start, end in tokens.spans for c in range(start, end)}
    spans = []
    for start, end in tokens.spans:
        while start < end < len(tokens.text) and end not in held and _continues(tokens.text[end]):
            end += 1
        spans.append((start, end))
    return spans


def _continues(char: str) -> bool:
    """Whether a character belongs to the one before it: a mark, a joiner, a skin tone."""
    return _CHARACTERS.fullmatch("a" + char) is not None


def _is_visible(char: str) -> bool:
    return not char.isspace() and not _continues(char)


def _is_word(char: str) -> bool:
    """A letter or digit; a vowel sign, which some scripts write as a character of its own."""
    in_word = char.isalnum() or unicodedata.category(char).startswith("M")
    return in_word and not _is_chinese(char)


def _is_chinese(char: str) -> bool:
    """The ideographs that BERT's tokenizer parts: the CJK blocks, without kana and Hangul."""
    return (
        "\u4e00" <= char <= "\u9fff"
        or "\u3400" <= char <= "\u4dbf"
        or "\uf900" <= char <= "\ufaff"
        or "\U00020000" <= char <= "\U0002fa1f"
    )


def _segments(text: str) -> list[int]:
    """For each character the number of its word, which grows along the text; -1 for white space.

    What a reader takes for one character (a letter with its marks, a flag, a family) is never cut.
    """
    numbers: list[int] = []
    number = -1
    firsts = [" ", " "]  # the first code points of the characters so far
    characters = _CHARACTERS.findall(text)
    for place, character in enumerate(characters):
        first, before = character[0], firsts[-1]
        after = characters[place + 1][0] if place + 1 < len(characters) else " "
        within = before in _APOSTROPHES and _is_word(firsts[-2])
        joined = (_is_word(first) and (_is_word(before) or within)) or (
            first in _APOSTROPHES and _is_word(before) and _is_word(after)
        )
        firsts.append(first)
        if first.isspace():  # a line's end is two; a mark behind a space stands alone
            n_blank = len(character) - len(character.lstrip())
            numbers += [-1] * n_blank
            character = character[n_blank:]
        if character and not joined:
            number += 1
        numbers += [number] * len(character)
    return numbers


def _visible_segments(span: tuple[int, int], segments: Sequence[int]) -> list[int]:
    return sorted({segments[c] for c in range(*span)} - {-1})


def _same_characters(a: str, b: str) -> dict[int, int]:
    """For characters of `b` the place of the same character in `a`."""
    if a == b:
        return {i: i for i in range(len(a))}
    words_a, words_b = _word_spans(a), _word_spans(b)
    matcher = SequenceMatcher(
        None,
        [a[start:end].casefold() for start, end in words_a],
        [b[start:end].casefold() for start, end in words_b],
        autojunk=False,
    )
    same: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        for i in range(block.size):
            (start, end), (other_start, other_end) = words_a[block.a + i], words_b[block.b + i]
            if end - start == other_end - other_start:
                same.update(zip(range(other_start, other_end), range(start, end), strict=True))
    return same


def _word_spans(text: str) -> list[tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for i, segment in enumerate(_segments(text)):
        if segment >= 0:
            spans[segment] = (spans.get(segment, (i, i))[0], i + 1)
    return list(spans.values())
