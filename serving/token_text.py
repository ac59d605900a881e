"""Tokens to be read: labels of those that a model chose or in a sentence, and the last word."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pretrained.tokenization.tokens import Tokens, plain, printable, text_labels

if TYPE_CHECKING:
    from pretrained import Tokenizer

END_OF_TEXT = "(end of text)"


def decode_bytes(tokenizer: Tokenizer, ids: Sequence[int]) -> bytes:
    """The bytes of some ids put together, for display.

    A model's vocabulary is often padded beyond its tokenizer's: such an id shows as <unknown:4362>.
    """
    parts = []
    for is_known, group in itertools.groupby(ids, lambda i: 0 <= i < tokenizer.vocab_size):
        if is_known:
            parts.append(tokenizer.decode_bytes(list(group)))
        else:
            parts += [f"<unknown:{token_id}>".encode() for token_id in group]
    return b"".join(parts)


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of some ids, for display; unknown ids as in `decode_bytes`."""
    return decode_bytes(tokenizer, ids).decode("utf-8", "replace")


def raw(tokenizer: Tokenizer, ids: Sequence[int]) -> list[bytes]:
    """The bytes of each token; those that end a text are named instead."""
    ends = tokenizer.end_ids
    return [
        END_OF_TEXT.encode() if token_id in ends else decode_bytes(tokenizer, [token_id])
        for token_id in ids
    ]


def pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Each token by itself, as a plain word; ␣ is the space that tells it from another of them."""
    return plain(raw(tokenizer, ids))


def piece(tokenizer: Tokenizer, token_id: int) -> str:
    """One token by itself, as a plain word; part of a character as <F0>."""
    return pieces(tokenizer, [token_id])[0]


def in_line(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Each token as it stands in a line of text: only its spaces are not made visible."""
    return tuple(printable(part).replace("␣", " ") for part in raw(tokenizer, ids))


def text_so_far(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of tokens that others may follow: a character appears once all of it is there."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(decode_bytes(tokenizer, ids))


def labels(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Labels that are unique in the whole text."""
    return text_labels(raw(tokenizer, ids))


def last_word(tokens: Tokens) -> int:
    """The position of the last token with a letter or digit; of the last token if none has one."""
    words = [
        position
        for position, piece in enumerate(tokens.pieces)
        if not tokens.special[position] and any(map(str.isalnum, piece))
    ]
    return words[-1] if words else len(tokens) - 1
