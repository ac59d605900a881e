"""One text in three tokenizers: the tokens, their bytes, and how many each one needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pandas as pd

from serving import models
from serving.limits import MAX_TOKENIZER_CHARACTERS, OverLimit
from ui.canvas.chips import Chip

if TYPE_CHECKING:
    from pretrained import Tokenizer, Tokens, WeightsSource

GPT2, SMOLLM2, WORDPIECE = "GPT-2 (BPE)", "SmolLM2 (BPE)", "MiniLM (WordPiece)"
METHODS = (GPT2, SMOLLM2, WORDPIECE)
# the models whose files include each vocabulary; BERT and MiniLM use the same one
_SOURCES = {
    GPT2: ("gpt2",),
    SMOLLM2: ("smollm2-135m-instruct",),
    WORDPIECE: ("all-minilm-l6-v2", "bert-base-uncased"),
}

NEXT_DAY = "The next day is bright and sunny"
PRESETS = {
    "The next day …": NEXT_DAY,
    "The animal …": "The animal didn't cross the street because it was too tired",
    "the artist …": "the artist painted the portrait of a woman with a brush",
    "Emoji": "Good morning 👋🏽 from a 👨‍👩‍👧 in 🇮🇳",
    "Accents": "naïve café, Ångström, São Paulo, cafe\u0301",
    "Numbers": "In 2024, 12345 + 678 = 13023, or 1.3e4",
    "Code": "def scale(q, k):\n    return q @ k.T / k.shape[-1] ** 0.5",
    "Right to left": "The word שלום means peace",
    "Spaces": "one  two   three\t four\n\nfive ",
}


@dataclass(frozen=True)
class TokenizedText:
    """A text tokenized by one tokenizer."""

    method: str
    tokenizer: Tokenizer
    tokens: Tokens

    @property
    def table(self) -> pd.DataFrame:
        """One row per token: its id, piece, character range and bytes."""
        return pd.DataFrame(
            {
                "id": self.tokens.ids,
                "token": [printable(self.tokens, i) for i in range(len(self.tokens))],
                "start": [start for start, _ in self.tokens.spans],
                "end": [end for _, end in self.tokens.spans],
                "bytes": [own_bytes(self.tokens, i).hex(" ") for i in range(len(self.tokens))],
            }
        )

    @property
    def chips(self) -> list[Chip]:
        """One chip per token, in text order."""
        return [self._chip(i) for i in range(len(self.tokens))]

    def _chip(self, index: int) -> Chip:
        start, end = self.tokens.spans[index]
        added = start == end
        where = "added by the tokenizer" if added else f"characters {start} to {end}"
        data = own_bytes(self.tokens, index)
        return Chip(
            label=printable(self.tokens, index),
            detail=f"token {index}: id {self.tokens.ids[index]}, {where}"
            + (f", bytes {data.hex(' ')}" if data else ""),
            muted=self.tokens.special[index],
            line_after="\n" in self.tokens.pieces[index],
        )


def printable(tokens: Tokens, index: int) -> str:
    """A token's piece with visible spaces and line breaks; WordPiece keeps its ##."""
    from pretrained.tokenization.tokens import printable as visible

    return visible((tokens.raw or tokens.pieces)[index])


def own_bytes(tokens: Tokens, index: int) -> bytes:
    """A token's bytes; for tokenizers that work on characters, the bytes of its text."""
    if tokens.raw:
        return tokens.raw[index]
    start, end = tokens.spans[index]
    return tokens.text[start:end].encode()


@dataclass(frozen=True)
class TokenizedTexts:
    """A text tokenized by each installed tokenizer, and the errors of the missing ones."""

    by_method: dict[str, TokenizedText]
    problems: dict[str, str]

    def summary(self, text: str) -> pd.DataFrame:
        """How many tokens each tokenizer needs; words are separated by spaces."""
        n_words = len(text.split())
        rows = []
        for method, reading in self.by_method.items():
            own = sum(start != end for start, end in reading.tokens.spans)
            rows.append(
                {
                    "tokenizer": method,
                    "vocabulary": f"{reading.tokenizer.vocab_size:,}",
                    "tokens": len(reading.tokens),
                    "special tokens": len(reading.tokens) - own,
                    "tokens per character": _ratio(own, len(text)),
                    "tokens per word": _ratio(own, n_words),
                }
            )
        return pd.DataFrame(rows)


def _ratio(count: int, of: int) -> str:
    return f"{count / of:.2f}" if of else "–"


def tokenize(text: str) -> TokenizedTexts:
    """Tokenize a text with every tokenizer; OverLimit for a text that is too long."""
    if len(text) > MAX_TOKENIZER_CHARACTERS:
        raise OverLimit(
            f"The text has {len(text):,} characters, more than this page's limit of "
            f"{MAX_TOKENIZER_CHARACTERS}. Shorten it: your text is still in the box."
        )
    readings, problems = {}, {}
    for method in METHODS:
        try:
            tokenizer = tokenizer_of(method)
        except models.LOAD_ERRORS as error:
            problems[method] = str(error)
        else:
            readings[method] = TokenizedText(method, tokenizer, tokenizer.encode(text))
    return TokenizedTexts(readings, problems)


def tokenizer_of(method: str) -> Tokenizer:
    """Load a tokenizer without weights and PyTorch; `models.LOAD_ERRORS` if it's missing."""
    if method == GPT2:
        from pretrained.tokenization import gpt2

        source = models.source("gpt2")
        return gpt2.gpt2(None if source is None else source.path)
    for name in _SOURCES[method]:
        source = models.source(name)
        if source is not None:
            with models.memory_guard(name):
                return _tokenizer(source)
    raise LookupError("Its vocabulary comes with the model's weights, which aren't installed.")


@lru_cache(maxsize=8)
def _tokenizer(source: WeightsSource) -> Tokenizer:
    from pretrained.tokenization.selection import tokenizer_for_source

    return tokenizer_for_source(source.path)
