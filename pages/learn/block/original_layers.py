"""Untrained layers of the 2017 Transformer for the page "Block"."""

from __future__ import annotations

from typing import Any

from pretrained.tokenization.tokens import numbered, plain
from serving import models
from serving.cache import MODELS, cached
from serving.limits import MAX_LESSON_TOKENS, check_text, check_tokens

ENCODER_2017, DECODER_2017 = "2017 encoder layer", "2017 decoder layer"
BASE_2017 = "2017 Transformer, base"
WIDTH_2017 = 512
HEADS_2017, HIDDEN_2017 = (1, 2, 4, 8, 16), (512, 1024, 2048, 4096)
EMPTY = "This text has no words. Please type one or more."


def key(choice: str) -> tuple[str, ...]:
    """A cache key for a 2017 layer or model, or for a model and its weights."""
    untrained = choice in (ENCODER_2017, DECODER_2017, BASE_2017)
    return (choice,) if untrained else models.key(choice)


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into words.

    Raises: OverLimit for a text that is too long, ValueError for one without words.
    """
    check_text(text)
    words = tuple(text.split())
    check_tokens(len(words), MAX_LESSON_TOKENS, "this page")
    if not words:
        raise ValueError(EMPTY)
    return words


@cached(cache=MODELS, key=lambda kind, n_heads, d_ff: (kind, n_heads, d_ff))
def untrained_layer(kind: str, n_heads: int, d_ff: int) -> Any:
    """An untrained layer of these sizes with fixed random weights."""
    from attention_core.model.block import Block
    from attention_core.model.original_transformer import (
        DecoderLayer,
        original_config,
        randomize,
    )

    config = original_config(n_heads=n_heads, d_ff=d_ff)
    layer = Block(config, 0) if kind == ENCODER_2017 else DecoderLayer(config)
    randomize(layer, seed=0)
    return layer.eval().requires_grad_(False)


def unique_labels(words: tuple[str, ...]) -> tuple[str, ...]:
    """Printable labels; repeated words get a subscript, such as "the₂"."""
    return numbered(plain(words))
