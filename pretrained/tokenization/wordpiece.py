"""WordPiece, the tokenizer of BERT and similar models, based on the `tokenizers` library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pretrained.checkpoint import MAX_CONFIG_BYTES, read_json
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
    check_ids,
    clean,
    place_added,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer as FastTokenizer

_SPECIAL = ("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]")
# [UNK] replaces a word of the text, so it isn't special in the sense of `Tokens.special`.
_STRUCTURAL = ("[CLS]", "[SEP]", "[MASK]", "[PAD]")


class WordPiece:
    """An encoder's tokenizer: [CLS] text [SEP], with the text in lowercase for uncased models.

    A typed [MASK] becomes the mask token, as users of BERT expect. Spans refer to the original
    text, before lowercasing and removing accents. Texts aren't truncated, so the caller must check
    the model's context length.
    """

    def __init__(self, tokenizer: FastTokenizer) -> None:
        # Tokenizer files of sentence encoders truncate and pad to 128 tokens.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.vocab_size: int = n_ids_of(tokenizer)
        self.end_ids: frozenset[int] = frozenset()
        self.mask_id: int | None = tokenizer.token_to_id("[MASK]")
        self.cls_id: int | None = tokenizer.token_to_id("[CLS]")
        self.sep_id: int | None = tokenizer.token_to_id("[SEP]")
        self._special = {tokenizer.token_to_id(name) for name in _STRUCTURAL} - {None}

    @classmethod
    def from_folder(cls, path: Path) -> WordPiece:
        """Build the tokenizer from tokenizer.json, or from vocab.txt if only that exists.

        Raises ValueError if the files are missing, malformed or exceed a limit.
        """
        if (path / "tokenizer.json").exists():
            return cls(read_tokenizer(path / "tokenizer.json"))
        if (path / "vocab.txt").exists():
            return cls(_from_vocabulary(path / "vocab.txt", _lowercase(path)))
        raise TokenizerMissing(
            f"{path.name} has no tokenizer. It needs tokenizer.json or vocab.txt."
        )

    def encode(self, text: str) -> Tokens:
        """Tokens of a text between [CLS] and [SEP]."""
        text = clean(text)
        with library_errors("The tokenizer can't process this text"):
            encoding = self._tokenizer.encode(text)
        added = [bool(flag) for flag in encoding.special_tokens_mask]
        return Tokens(
            text=text,
            ids=tuple(encoding.ids),
            pieces=tuple(encoding.tokens),
            spans=place_added(encoding.offsets, added, len(text)),
            special=tuple(i in self._special for i in encoding.ids),
        )

    def words(self, text: str) -> tuple[str, ...]:
        """The normalized words of a text, for example in lowercase and without accents.

        Leaves out typed special tokens, such as [MASK].
        """
        names = (token.content for token in self._tokenizer.get_added_tokens_decoder().values())
        pattern = "|".join(map(re.escape, names))
        words: list[str] = []
        for part in re.split(pattern, clean(text)) if pattern else [clean(text)]:
            if self._tokenizer.normalizer is not None:
                part = self._tokenizer.normalizer.normalize_str(part)
            words += [word for word, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(part)]
        return tuple(words)

    def id_of(self, piece: str) -> int | None:
        """The id of a vocabulary entry; None if it isn't a token."""
        index: int | None = self._tokenizer.token_to_id(piece)
        return index

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to normalized text, including special tokens.

        Raises ValueError for an id outside the vocabulary.
        """
        check_ids(ids, self.vocab_size)
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The UTF-8 bytes of `decode`; WordPiece tokens only contain whole characters."""
        return self.decode(ids).encode()


def _lowercase(path: Path) -> bool:
    """Whether the model is uncased, which is the default."""
    file = path / "tokenizer_config.json"
    if not file.exists():
        return True
    return read_json(file, MAX_CONFIG_BYTES).get("do_lower_case") is not False


def _from_vocabulary(file: Path, lowercase: bool) -> FastTokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    try:
        # splitlines() would also split at other line separators, which may be tokens
        lines = read_bytes(file, MAX_TOKENIZER_BYTES).decode().rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError("vocab.txt isn't UTF-8 text.") from error
    vocabulary = {line.rstrip("\r"): index for index, line in enumerate(lines)}
    missing = [name for name in _SPECIAL if name not in vocabulary]
    if missing:
        raise ValueError(f"vocab.txt is missing {', '.join(missing)}.")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(_SPECIAL))
    return tokenizer
