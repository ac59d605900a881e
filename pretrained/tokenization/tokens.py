"""Text as a model sees it: token ids, their texts, and their positions in the text."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

MAX_LABEL_CHARS = 24
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥"}
# Categories that are invisible or affect adjacent characters: control, format (zero-width joiners,
# bidirectional marks), surrogate, private use, unassigned, and separators.
_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


@dataclass(frozen=True)
class Tokens:
    """A tokenized text. All tuples have one entry per token.

    text: the input, with lone surrogates replaced by U+FFFD.
    ids: the token ids.
    pieces: the text of each token. Parts of a character are U+FFFD here; `labels` shows their
    bytes.
        WordPiece keeps '##'.
    spans: half-open character ranges of `text`. The span of a part of a character is the whole
        character. A token that the tokenizer added has an empty span (n, n).
    special: whether the token is a special token ([CLS], [SEP], [MASK], ...).
    raw: the bytes of each token if the tokenizer works on bytes, otherwise empty.

    Raises ValueError if the lengths differ.
    """

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    special: tuple[bool, ...]
    raw: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        columns = [self.ids, self.pieces, self.spans, self.special]
        lengths = {len(column) for column in (*columns, *filter(None, [self.raw]))}
        if len(lengths) != 1:
            raise ValueError(
                f"ids, pieces, spans, special and raw have different lengths: {sorted(lengths)}."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A short, printable label per token, unique within the text, for axes of charts."""
        return text_labels(self.raw or self.pieces)


@runtime_checkable
class Tokenizer(Protocol):
    """The interface of a tokenizer.

    end_ids: tokens that end a generation. mask_id, cls_id, sep_id: None if the vocabulary has none.
    """

    vocab_size: int
    end_ids: frozenset[int]
    mask_id: int | None
    cls_id: int | None
    sep_id: int | None

    def encode(self, text: str) -> Tokens:
        """Tokens of any string; ValueError for other types."""

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text; ValueError for an id outside the vocabulary."""

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Decode ids to bytes, which can restore characters that are split across tokens."""


class TokenizerMissing(ValueError):
    """A model folder has no tokenizer files."""


@dataclass
class MissingTokenizer:
    """Placeholder for a model without a tokenizer, such as a core that was saved without one.

    reason: the message of the ValueError that its methods raise.
    """

    reason: str
    vocab_size: int
    end_ids: frozenset[int]
    mask_id: int | None = None
    cls_id: int | None = None
    sep_id: int | None = None

    def encode(self, text: str) -> Tokens:
        """Raise ValueError."""
        raise ValueError(f"{self.reason} Without it, pass token ids to the core instead of text.")

    def decode(self, ids: Sequence[int]) -> str:
        """Raise ValueError."""
        raise ValueError(self.reason)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Raise ValueError."""
        raise ValueError(self.reason)


def plain(pieces: Sequence[str | bytes]) -> tuple[str, ...]:
    """Each piece as a plain word: " the" becomes "the"; whitespace and bytes as in `printable`.

    If two different pieces would look the same, both are shown as `printable`: "the" and "␣the".
    """
    words = {piece: _word(piece) for piece in pieces}
    n_pieces = Counter(words.values())
    return tuple(
        words[piece] if n_pieces[words[piece]] == 1 else printable(piece) for piece in pieces
    )


def text_labels(pieces: Sequence[str | bytes]) -> tuple[str, ...]:
    """Plain, unique words for the tokens of a text: the second "the" or " the" is "the₂"."""
    return numbered([_word(piece) for piece in pieces])


def numbered(labels: Sequence[str]) -> tuple[str, ...]:
    """Make labels unique with subscripts: the second "the" becomes "the₂"."""
    used, counts, unique = set(labels), Counter[str](), []
    for label in labels:
        shown = label
        counts[label] += 1
        while counts[label] > 1 and (shown := f"{label}{_lowered(counts[label])}") in used:
            counts[label] += 1
        used.add(shown)
        unique.append(shown)
    return tuple(unique)


def _lowered(number: int) -> str:
    return str(number).translate(_SUBSCRIPTS)


def _word(piece: str | bytes) -> str:
    """A piece without its leading space; `printable` if it has other whitespace."""
    words = _text(piece).removeprefix(" ").split(" ")
    if not all(words) or words[0][0].isspace():
        return printable(piece)
    return _cut(" ".join(map(printable, words)))


def _text(piece: str | bytes) -> str:
    return piece.decode("utf-8", "surrogateescape") if isinstance(piece, bytes) else piece


def _cut(label: str) -> str:
    return label if len(label) <= MAX_LABEL_CHARS else label[: MAX_LABEL_CHARS - 1] + "…"


def printable(piece: str | bytes) -> str:
    """A piece with invisible characters made visible, at most MAX_LABEL_CHARS characters long.

    A space becomes ␣, a newline ⏎ and a tab ⇥. Other invisible characters become escapes, and
    bytes of incomplete characters become hexadecimal numbers, such as <F0><9F>.
    """
    piece = _text(piece)
    visible = []
    for char in piece[: MAX_LABEL_CHARS + 1]:
        if char in _VISIBLE:
            visible.append(_VISIBLE[char])
        elif "\udc80" <= char <= "\udcff":  # a byte that surrogateescape couldn't decode
            visible.append(f"<{ord(char) - 0xDC00:02X}>")
        elif unicodedata.category(char) in _ESCAPED:
            code = ord(char)
            visible.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}")
        else:
            visible.append(char)
    if visible and unicodedata.combining(piece[0]):
        visible.insert(0, "◌")  # otherwise the mark would combine with an adjacent character
    return _cut("".join(visible)) or "∅"


def clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode, with U+FFFD.

    Raises ValueError if `text` isn't a string.
    """
    if not isinstance(text, str):
        raise ValueError(f"A text must be a string, got {type(text).__name__}.")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def byte_spans(
    text: str, token_bytes: Sequence[bytes], without: Collection[int] = ()
) -> tuple[tuple[int, int], ...]:
    """Character spans of tokens whose concatenated bytes are the text's UTF-8 bytes.

    A span covers every character of which the token has at least one byte.
    without: bytes that aren't in the vocabulary, so no token contains them.
    Raises ValueError if the bytes differ from those of the text.
    """
    if b"".join(token_bytes) != bytes(byte for byte in text.encode() if byte not in without):
        raise ValueError("The tokens' bytes aren't the bytes of the text.")
    char_of: list[int] = []  # byte position -> character position
    for index, char in enumerate(text):
        char_of.extend(index for byte in char.encode() if byte not in without)
    spans = []
    start = 0
    for piece in token_bytes:
        end = start + len(piece)
        if piece:
            spans.append((char_of[start], char_of[end - 1] + 1))
        else:
            place = char_of[start] if start < len(char_of) else len(text)
            spans.append((place, place))
        start = end
    return tuple(spans)


def end_ids_of(config: Mapping[str, Any]) -> frozenset[int]:
    """The end-of-text ids in a config.json, where they may be a number, a list or missing."""
    value = config.get("eos_token_id")
    values = value if isinstance(value, list) else [value]
    return frozenset(v for v in values if isinstance(v, int) and not isinstance(v, bool))


def place_added(
    offsets: Sequence[tuple[int, int]], added: Sequence[bool], n_chars: int
) -> tuple[tuple[int, int], ...]:
    """Spans in which every added token is empty, at the end of the previous token."""
    spans = []
    last_end = 0
    for (start, end), is_added in zip(offsets, added, strict=True):
        spans.append((last_end, last_end) if is_added else (start, end))
        last_end = last_end if is_added else end
    if spans and added[-1]:
        spans[-1] = (n_chars, n_chars)
    return tuple(spans)


def check_ids(ids: Sequence[int], vocab_size: int) -> None:
    """Raise ValueError for ids that aren't integers, or are outside the vocabulary."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ValueError(f"Token ids must be a list of integers, got {type(ids).__name__}.")
    for token_id in ids:
        if isinstance(token_id, bool) or not isinstance(token_id, Integral):
            raise ValueError(f"Token ids must be integers, got {token_id!r}.")
        if not 0 <= token_id < vocab_size:
            raise ValueError(f"Token ids must be from 0 to {vocab_size - 1}, got {token_id}.")
