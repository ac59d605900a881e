"""Keys that absorb unused attention: the first token, [CLS], [SEP], punctuation."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from pretrained import Tokens

FIRST, CLS, SEP, PUNCTUATION = "first token", "[CLS]", "[SEP]", "punctuation"
KINDS = (FIRST, CLS, SEP, PUNCTUATION)


def positions_of_kind(tokens: Tokens, kind: str) -> tuple[int, ...]:
    """The positions of one kind of token, ascending; empty if the text has none.

    The first token is at position 0. In an encoder, that's [CLS].
    Raises: ValueError for a kind that isn't in `KINDS`.
    """
    if kind == FIRST:
        return (0,) if len(tokens) else ()
    if kind in (CLS, SEP):
        marked = zip(tokens.pieces, tokens.special, strict=True)
        return tuple(i for i, (piece, special) in enumerate(marked) if special and piece == kind)
    if kind == PUNCTUATION:
        return tuple(i for i in range(len(tokens)) if _is_punctuation(tokens, i))
    raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")


def positions_of_kinds(tokens: Tokens, kinds: Collection[str]) -> tuple[int, ...]:
    """The positions of all these kinds, ascending and without duplicates."""
    return tuple(
        sorted({position for kind in kinds for position in positions_of_kind(tokens, kind)})
    )


def _is_punctuation(tokens: Tokens, index: int) -> bool:
    """Whether a token's text, without surrounding spaces, is only punctuation and symbols.

    These are the Unicode categories P (punctuation) and S (symbols such as + and €). Part of an
    emoji counts as the whole emoji.
    """
    start, end = tokens.spans[index]
    text = tokens.text[start:end].strip()
    return bool(text) and all(unicodedata.category(char)[0] in "PS" for char in text)
