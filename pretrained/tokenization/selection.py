"""Chooses a model's tokenizer by the files in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pretrained import bundled_smollm2, checkpoint
from pretrained.tokenization import bpe, gpt2, wordpiece
from pretrained.tokenization.tokens import Tokenizer


def tokenizer_for_folder(path: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a model folder, chosen by its files and the model type.

    GPT-2's own vocabulary uses tiktoken; other byte-level vocabularies and WordPiece use the
    tokenizers library. Raises ValueError if the files are missing or invalid.
    """
    if config["model_type"] == "bert" and not bpe.is_byte_level(path):
        return wordpiece.WordPiece.from_folder(path)
    if config["model_type"] == "gpt2" and gpt2.has_gpt2_vocabulary(path, config):
        return gpt2.gpt2(path)
    return bpe.FastBpe.from_folder(path, config)


def tokenizer_for_source(path: Path) -> Tokenizer:
    """The tokenizer of a model's source (`pretrained.find(name).path`), without its weights.

    Raises ValueError if the files are missing or invalid, and OSError if the bundled SmolLM2 can't
    be converted.
    """
    if next(path.glob("*.gguf"), None) is not None:
        path = bundled_smollm2.converted_folder(path)
    return tokenizer_for_folder(path, checkpoint.read_config(path))
