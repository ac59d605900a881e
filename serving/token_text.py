"""Readable labels and text for token ids, and the position of a text's last word."""

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
    """Decode ids to bytes, for display.

    A model's vocabulary is often larger than its tokenizer's. Ids that the tokenizer doesn't know
    are shown as <unknown:4362>.
    """
    parts = []
    for is_known, group in itertools.groupby(ids, lambda i: 0 <= i < tokenizer.vocab_size):
        if is_known:
            parts.append(tokenizer.decode_bytes(list(group)))
        else:
            parts += [f"<unknown:{token_id}>".encode() for token_id in group]
    return b"".join(parts)


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Decode ids to text, for display; unknown ids as in `decode_bytes`."""
    return decode_bytes(tokenizer, ids).decode("utf-8", "replace")


def token_bytes(tokenizer: Tokenizer, ids: Sequence[int]) -> list[bytes]:
    """The bytes of each token; end-of-text tokens show a name instead."""
    ends = tokenizer.end_ids
    return [
        END_OF_TEXT.encode() if token_id in ends else decode_bytes(tokenizer, [token_id])
        for token_id in ids
    ]


def pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Each token as a plain word; ␣ marks a leading space only if words would look the same."""
    return plain(token_bytes(tokenizer, ids))


def piece(tokenizer: Tokenizer, token_id: int) -> str:
    """One token as a plain word; part of a character is shown as <F0>."""
    return pieces(tokenizer, [token_id])[0]


def inline_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Each token for display within a line of text: like `printable`, but with normal spaces."""
    return tuple(printable(part).replace("␣", " ") for part in token_bytes(tokenizer, ids))


def decode_partial(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text of an unfinished generation, without an incomplete last character."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(decode_bytes(tokenizer, ids))


def labels(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Labels for the tokens of a text, each of them unique."""
    return text_labels(token_bytes(tokenizer, ids))


def last_word_index(tokens: Tokens) -> int:
    """The position of the last token with a letter or digit, otherwise of the last token."""
    words = [
        position
        for position, piece in enumerate(tokens.pieces)
        if not tokens.special[position] and any(map(str.isalnum, piece))
    ]
    return words[-1] if words else len(tokens) - 1
