"""Byte-level BPE tokenizers, based on the `tokenizers` library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained.checkpoint import read_json
from pretrained.model_files import read_bytes
from pretrained.tokenization.bounds import (
    MAX_TOKENIZER_BYTES,
    library_errors,
    n_ids_of,
    read_tokenizer,
)
from pretrained.tokenization.tokens import (
    TokenizerMissing,
    Tokens,
    byte_spans,
    check_ids,
    clean,
    end_ids_of,
    place_added,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer


class FastBpe:
    """A tokenizer from a tokenizer.json, usually of a decoder.

    Special tokens that a user types are treated as ordinary text. Special tokens that the tokenizer
    adds, such as a begin-of-text token, have an empty span. In an encoder's file, [MASK] is an
    added token that isn't special, so a typed [MASK] becomes the mask token, as users of BERT
    expect.
    """

    cls_id: int | None = None
    sep_id: int | None = None

    def __init__(self, tokenizer: FastTokenizer, end_ids: frozenset[int] = frozenset()) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.vocab_size = n_ids_of(tokenizer)
        added = tokenizer.get_added_tokens_decoder()
        self._added = {index: token.content for index, token in added.items()}
        special = {index for index, token in added.items() if token.special}
        mask = tokenizer.token_to_id("[MASK]")
        self.mask_id: int | None = mask if mask in added and mask not in special else None
        self._special = frozenset(special if self.mask_id is None else special | {self.mask_id})
        end = tokenizer.token_to_id("<|endoftext|>")
        self.end_ids = end_ids | ({end} if end in self._special else set())
        # With a ByteLevel decoder, vocabulary entries represent bytes in GPT-2's alphabet.
        self._byte_level = "ByteLevel" in repr(tokenizer.decoder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild copies from scratch: the library's pickles lose `encode_special_tokens`."""
        return FastBpe, (self._tokenizer, self.end_ids)

    @classmethod
    def from_folder(cls, path: Path, config: Mapping[str, Any]) -> FastBpe:
        """Build the tokenizer from tokenizer.json, or from vocab.json with merges.txt.

        Raises ValueError if the files are missing, malformed or exceed a limit.
        """
        return cls(_fast_tokenizer(path), end_ids_of(config))

    def encode(self, text: str) -> Tokens:
        """Tokens of a text, including those that the tokenizer adds."""
        text = clean(text)
        with library_errors("The tokenizer can't process this text"):
            encoding = self._tokenizer.encode(text)
        ids = tuple(encoding.ids)
        added = [bool(flag) for flag in encoding.special_tokens_mask]
        pieces = [self._token_bytes(i) for i in ids]
        own = [b"" if flag else piece for piece, flag in zip(pieces, added, strict=True)]
        try:
            spans = byte_spans(text, own, self._no_tokens)
        except ValueError:
            # a normalizer changed the text, so use the library's offsets into the original
            spans = place_added(encoding.offsets, added, len(text))
        return Tokens(
            text=text,
            ids=ids,
            pieces=tuple(piece.decode("utf-8", "replace") for piece in pieces),
            spans=spans,
            special=tuple(i in self._special for i in ids),
            raw=tuple(pieces),
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text, including special tokens."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Decode ids to bytes. Raises ValueError for an id outside the vocabulary."""
        check_ids(ids, self.vocab_size)
        return b"".join(self._token_bytes(i) for i in ids)

    def words(self, text: str) -> tuple[str, ...]:
        """The words of a text with their leading spaces; merges never cross word borders.

        Raises ValueError for a vocabulary that isn't byte-level, or has a normalizer.
        """
        self._check_byte_level()
        alphabet = byte_alphabet()
        pieces = self._tokenizer.pre_tokenizer.pre_tokenize_str(clean(text))
        return tuple(bytes(alphabet[char] for char in piece).decode() for piece, _ in pieces)

    @cached_property
    def merge_ranks(self) -> Mapping[tuple[bytes, bytes], int]:
        """The file's merges: pairs of adjacent parts, and their rank in the merge list.

        Raises ValueError for a vocabulary that isn't byte-level, or has a normalizer.
        """
        self._check_byte_level()
        merges = json.loads(self._tokenizer.to_str())["model"]["merges"]
        return read_merges(merge if isinstance(merge, str) else " ".join(merge) for merge in merges)

    def id_of(self, piece: bytes) -> int | None:
        """The id of some bytes; None if they aren't a token."""
        spelling = {byte: char for char, byte in byte_alphabet().items()}
        index: int | None = self._tokenizer.token_to_id("".join(spelling[byte] for byte in piece))
        return index

    @cached_property
    def _no_tokens(self) -> frozenset[int]:
        """Bytes without a token, which the library drops from a text.

        After such a byte, the library's offsets point to the wrong characters.
        """
        if not self._byte_level:
            return frozenset()
        return frozenset(byte for byte in range(256) if self.id_of(bytes([byte])) is None)

    def _check_byte_level(self) -> None:
        if not self._byte_level or self._tokenizer.normalizer is not None:
            raise ValueError(
                "This only works for byte-level vocabularies without a normalizer, such as GPT-2's."
            )

    def _token_bytes(self, index: int) -> bytes:
        if index in self._added:
            return self._added[index].encode()
        token = self._tokenizer.id_to_token(index) or ""
        if self._byte_level:
            alphabet = byte_alphabet()
            return bytes(alphabet[char] for char in token)
        # SentencePiece style: "▁" is a space, <0x..> a single byte.
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace("▁", " ").encode()


def is_byte_level(path: Path) -> bool:
    """Whether the folder's tokenizer.json is byte-level BPE; ValueError for a damaged file."""
    file = path / "tokenizer.json"
    if not file.exists():
        return False
    value = read_json(file, MAX_TOKENIZER_BYTES)
    kinds = [value.get(part) or {} for part in ("model", "decoder")]
    if not all(isinstance(kind, dict) for kind in kinds):
        raise ValueError(f"{file.name} of {path.name} is damaged.")
    return [kind.get("type") for kind in kinds] == ["BPE", "ByteLevel"]


def merge_lines(raw: bytes) -> list[str]:
    """The lines of a merges.txt, each with two adjacent parts separated by a space.

    Raises ValueError if it isn't UTF-8 text.
    """
    try:
        lines = raw.decode().split("\n")  # splitlines() would also split at other characters
    except UnicodeDecodeError as error:
        raise ValueError("The list of merges isn't UTF-8 text.") from error
    lines = [line.removesuffix("\r") for line in lines]
    return [line for line in lines if line and not line.startswith("#version")]


def read_merges(lines: Iterable[str]) -> dict[tuple[bytes, bytes], int]:
    """Ranks of merges in GPT-2's alphabet; each line has two parts separated by a space."""
    alphabet = byte_alphabet()
    ranks = {}
    for rank, line in enumerate(lines):
        left, right = (bytes(alphabet[char] for char in part) for part in line.split(" "))
        ranks[left, right] = rank
    return ranks


@lru_cache(maxsize=1)
def byte_alphabet() -> dict[str, int]:
    """GPT-2's characters for the 256 bytes: printable bytes unchanged, others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(b): b for b in plain} | {chr(0x100 + n): b for n, b in enumerate(rest)}


def _fast_tokenizer(path: Path) -> FastTokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    if (path / "tokenizer.json").exists():
        return read_tokenizer(path / "tokenizer.json")
    vocabulary, merges = path / "vocab.json", path / "merges.txt"
    if vocabulary.exists() and merges.exists():
        ids = read_json(vocabulary, MAX_TOKENIZER_BYTES)
        with library_errors(f"The tokenizer files of {path.name} are damaged"):
            lines = merge_lines(read_bytes(merges, MAX_TOKENIZER_BYTES))
            pairs = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
            tokenizer = Tokenizer(models.BPE(vocab=ids, merges=pairs))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer
    raise TokenizerMissing(
        f"{path.name} has no tokenizer. It needs tokenizer.json, or vocab.json and merges.txt."
    )
