"""Keys on which heads rest without saying much: the first token, [CLS], [SEP], punctuation."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from pretrained import Tokens

FIRST, CLS, SEP, PUNCTUATION = "first token", "[CLS]", "[SEP]", "punctuation"
KINDS = (FIRST, CLS, SEP, PUNCTUATION)


def keys(tokens: Tokens, kind: str) -> tuple[int, ...]:
    """The positions of a kind of token, ascending; none where the text has no such token.

    The first token is position 0, which in an encoder is [CLS].
    Raises: ValueError for a kind that is not in `KINDS`.
    """
    if kind == FIRST:
        return (0,) if len(tokens) else ()
    if kind in (CLS, SEP):
        marked = zip(tokens.pieces, tokens.special, strict=True)
        return tuple(i for i, (piece, special) in enumerate(marked) if special and piece == kind)
    if kind == PUNCTUATION:
        return tuple(i for i in range(len(tokens)) if _is_punctuation(tokens, i))
    raise ValueError(f"no kind of tokens {kind!r}, only {KINDS}")


def hidden(tokens: Tokens, kinds: Collection[str]) -> tuple[int, ...]:
    """The positions of all these kinds together, ascending, each once."""
    return tuple(sorted({position for kind in kinds for position in keys(tokens, kind)}))


def _is_punctuation(tokens: Tokens, index: int) -> bool:
    """Whether the text of a token, spaces around it aside, is only punctuation and symbols.

    That is Unicode's categories P (punctuation) and S (symbols, such as + and €); a part of an
    emoji counts as the whole.
    """
    start, end = tokens.spans[index]
    text = tokens.text[start:end].strip()
    return bool(text) and all(unicodedata.category(char)[0] in "PS" for char in text)
