"""Which tokenizer a model has: chosen by the files in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pretrained import bundled_smollm2, checkpoint
from pretrained.tokenization import bpe, gpt2, wordpiece
from pretrained.tokenization.tokens import Tokenizer


def for_folder(path: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a model folder, by the architecture that its configuration names.

    GPT-2's own vocabulary goes through tiktoken, other byte-level vocabularies and WordPiece
    through the tokenizers library. Raises ValueError when the folder's files do not make one.
    """
    if config["model_type"] == "bert" and not bpe.is_byte_level(path):
        return wordpiece.WordPiece.from_folder(path)
    if config["model_type"] == "gpt2" and gpt2.has_gpt2_vocabulary(path, config):
        return gpt2.gpt2(path)
    return bpe.FastBpe.from_folder(path, config)


def for_source(path: Path) -> Tokenizer:
    """The tokenizer of a model's source (`pretrained.find(name).path`), without its weights.

    Raises ValueError when the files do not make one, and OSError when the bundled SmolLM2 cannot be
    converted.
    """
    if next(path.glob("*.gguf"), None) is not None:
        path = bundled_smollm2.converted(path)
    return for_folder(path, checkpoint.read_config(path))
