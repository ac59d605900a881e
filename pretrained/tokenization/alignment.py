"""Aligns the tokens of two tokenizations by their characters.

Two models split a text differently, so their attention maps have different rows and columns. But
some token borders are the same in both. The text between two such borders is a unit, which consists
of one or more tokens on each side. Words are larger units, which are the same for every tokenizer.
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
# User-perceived characters: Unicode's extended grapheme clusters,
# https://www.unicode.org/reports/tr29/.
_CHARACTERS = regex.compile(r"\X")


@dataclass(frozen=True)
class AlignedUnit:
    """Indices of tokens on both sides, a and b, that contain the same characters.

    label_a, label_b: the unit's text on each side, printable and unique within its side.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    label_a: str
    label_b: str


@dataclass(frozen=True)
class Alignment:
    """The units that two tokenizations share, and groups of tokens without a counterpart.

    Every token belongs to exactly one unit, or to one group of `only_a` or `only_b`. Units and
    groups follow the order of the text.
    """

    units: tuple[AlignedUnit, ...]
    only_a: Groups
    only_b: Groups

    def unit_of(self, side: str, n_tokens: int) -> tuple[int, ...]:
        """For each token of side "a" or "b", the index of its unit; -1 if it has none.

        Raises: ValueError for a different side, or if the units contain more than `n_tokens`
        tokens.
        """
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        places = [-1] * n_tokens
        for number, unit in enumerate(self.units):
            for token in unit.a if side == "a" else unit.b:
                if token >= n_tokens:
                    raise ValueError(f"unit {number} has token {token}, but n_tokens is {n_tokens}")
                places[token] = number
        return tuple(places)


def words(tokens: Tokens) -> Groups:
    """Group token indices by word; every token is in exactly one group.

    A word consists of letters, digits and marks, and may contain apostrophes ("didn't"). As in
    BERT's tokenizer, every Chinese character is a separate word. So is every other visible
    character, such as a punctuation mark or a whole emoji sequence. Whitespace belongs to the next
    word, or at the end of the text to the previous one. If a token contains parts of two words,
    those words form one group. Tokens that the tokenizer added, such as [CLS], are separate groups.
    """
    sets = _Sets(len(tokens))
    segments = _segments(tokens.text)
    first_of: dict[int, int] = {}  # segment -> the first token that contains a part of it
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
    """Align tokens in the smallest units whose borders are token borders on both sides.

    groups_a, groups_b: groups of tokens that must stay together, such as `words`; single tokens by
    default. If the texts differ, words that occur in both in the same order are aligned, ignoring
    case (difflib.SequenceMatcher). Tokens with a visible character of any other word have no
    counterpart. Tokens that the tokenizers added ([CLS]) are aligned if they have the same text and
    are at the same end.
    """
    same_of = _same_characters(a.text, b.text)
    spans_a, spans_b = _covering(a), _covering(b)
    offset = len(a.text)  # characters that only b has are numbered after those of a
    at_a = [list(range(*span)) for span in spans_a]
    at_b = [[same_of.get(c, offset + c) for c in range(*span)] for span in spans_b]
    characters = _Sets(offset + len(b.text))
    for held in (at_a, at_b):
        for places in held:
            characters.join_all(places)
    for held, groups in ((at_a, groups_a), (at_b, groups_b)):
        for group in groups or ():
            characters.join_all([place for token in group for place in held[token]])

    # a group with a visible character that only one text has gets no counterpart
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
    """Like `aligned`, but keeps words together, so each unit is one or more words."""
    return aligned(a, b, words(a), words(b))


def group_labels(tokens: Tokens, groups: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """The text of each group of tokens: printable, unique, without surrounding whitespace.

    For a group of added tokens, it's their pieces.
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


def word_tokens(tokens: Tokens, token: int) -> str | None:
    """The word that a token belongs to, as in `group_labels`.

    None for whitespace and for special tokens.
    Raises: IndexError for a token that doesn't exist.
    """
    start, end = tokens.spans[token]
    if tokens.special[token] or not tokens.text[start:end].strip():
        return None
    groups = words(tokens)
    labels = group_labels(tokens, groups)
    return next(label for group, label in zip(groups, labels, strict=True) if token in group)


class _Sets:
    """Disjoint sets of 0 .. n - 1 (union-find), each represented by its smallest member."""

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
    """The tokens of each set of characters, without tokens that have no characters."""
    tokens_of: dict[int, list[int]] = {}
    for token, places in enumerate(held):
        if places:
            tokens_of.setdefault(characters.find(places[0]), []).append(token)
    return {root: tuple(tokens) for root, tokens in tokens_of.items()}


def _rest(n_tokens: int, paired: set[int], groups: Iterable[tuple[int, ...]]) -> Groups:
    """Groups of tokens without a counterpart, in text order; added tokens are single groups."""
    loose = [group for group in groups if group[0] not in paired]
    grouped = paired.union(*loose)
    return tuple(sorted([*loose, *((n,) for n in range(n_tokens) if n not in grouped)]))


def _added_pairs(
    a: Tokens, b: Tokens, spans_a: Sequence[tuple[int, int]], spans_b: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of added tokens on both sides with the same text, at the same end of the text."""
    empty_a = [n for n, (start, end) in enumerate(spans_a) if start == end]
    empty_b = [n for n, (start, end) in enumerate(spans_b) if start == end]
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for at_start in (True, False):
        # added tokens before or after the text, which have empty spans
        left = [n for n in empty_a if _is_leading(n, spans_a) is at_start]
        right = [n for n in empty_b if _is_leading(n, spans_b) is at_start]
        for i, j in zip(left, right, strict=False):
            if a.pieces[i] == b.pieces[j]:
                pairs.append(((i,), (j,)))
    return pairs


def _is_leading(token: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether an added token is before the text; in an empty text, only the first token is."""
    text = [n for n, (start, end) in enumerate(spans) if end > start]
    return token < (text[0] if text else 1)


def _covering(tokens: Tokens) -> list[tuple[int, int]]:
    """The spans of all tokens, extended by the marks after them that no token covers.

    If an encoder strips accents, no token contains the mark of a decomposed "é". It's assigned to
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
    """Whether a character belongs to the one before it, such as a mark, joiner or skin tone."""
    return _CHARACTERS.fullmatch("a" + char) is not None


def _is_visible(char: str) -> bool:
    return not char.isspace() and not _continues(char)


def _is_word(char: str) -> bool:
    """Whether a character is a letter, digit or mark (such as a vowel sign), but not Chinese."""
    in_word = char.isalnum() or unicodedata.category(char).startswith("M")
    return in_word and not _is_chinese(char)


def _is_chinese(char: str) -> bool:
    """Whether BERT's tokenizer splits at this character: CJK ideographs, not kana or Hangul."""
    return (
        "\u4e00" <= char <= "\u9fff"
        or "\u3400" <= char <= "\u4dbf"
        or "\uf900" <= char <= "\ufaff"
        or "\U00020000" <= char <= "\U0002fa1f"
    )


def _segments(text: str) -> list[int]:
    """For each code point, the index of its word; -1 for whitespace.

    User-perceived characters (a letter with its marks, a flag, a family emoji) are never split.
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
        if first.isspace():  # "\r\n" is one cluster, and a mark may follow a space
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
    """Map positions of characters in `b` to the position of the same character in `a`."""
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
