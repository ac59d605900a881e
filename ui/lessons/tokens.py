"""What the page "Tokens" shows: one text through three tokenizers, a word cut, an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import pretrained
from ui import models
from ui.bounded import BoundedCache
from ui.chips import Chip
from ui.limits import (
    EMBEDDING_CACHE_BYTES,
    MAX_MAP_TOKENS,
    MAX_TOKENIZER_CHARACTERS,
    OverLimit,
)
from ui.pictures import isolated
from ui.quiz import Question
from ui.tensors import Panel

if TYPE_CHECKING:
    from pretrained import Tokenizer, Tokens
    from pretrained.bpe import FastBpe
    from pretrained.gpt2_bpe import Gpt2Bpe

GPT2, SMOLLM2, WORDPIECE = "GPT-2 (BPE)", "SmolLM2 (BPE)", "MiniLM (WordPiece)"
METHODS = (GPT2, SMOLLM2, WORDPIECE)
# the model whose source carries each vocabulary; BERT's is MiniLM's too
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

# Columns of an embedding that are drawn.
COLUMNS = 12


@dataclass(frozen=True)
class Reading:
    """A text as one tokenizer reads it."""

    method: str
    tokenizer: Tokenizer
    tokens: Tokens

    @property
    def table(self) -> pd.DataFrame:
        """One row a token: id, piece, the characters it covers, its bytes."""
        return pd.DataFrame(
            {
                "id": self.tokens.ids,
                "token": [printable(self.tokens, i) for i in range(len(self.tokens))],
                "from": [start for start, _ in self.tokens.spans],
                "to": [end for _, end in self.tokens.spans],
                "bytes": [own_bytes(self.tokens, i).hex(" ") for i in range(len(self.tokens))],
            }
        )

    @property
    def chips(self) -> list[Chip]:
        """The text with the borders of its tokens."""
        return [self._chip(i) for i in range(len(self.tokens))]

    def _chip(self, index: int) -> Chip:
        start, end = self.tokens.spans[index]
        added = start == end
        where = "added" if added else f"characters {start} to {end}"
        data = own_bytes(self.tokens, index)
        return Chip(
            label=printable(self.tokens, index),
            detail=f"token {index}: id {self.tokens.ids[index]}, {where}, bytes "
            f"{data.hex(' ') if data else 'none of the text'}",
            quiet=self.tokens.special[index],
            line_after="\n" in self.tokens.pieces[index],
        )


def printable(tokens: Tokens, index: int) -> str:
    """The piece of a token with everything invisible made visible; WordPiece keeps its ##."""
    from pretrained.tokens import printable as visible

    return visible((tokens.raw or tokens.pieces)[index])


def own_bytes(tokens: Tokens, index: int) -> bytes:
    """The bytes of a token; where a tokenizer works on characters, those of its piece of text."""
    if tokens.raw:
        return tokens.raw[index]
    start, end = tokens.spans[index]
    return tokens.text[start:end].encode()


@dataclass(frozen=True)
class Readings:
    """The text through every tokenizer that is here, and what went wrong with the others."""

    found: dict[str, Reading]
    problems: dict[str, str]

    def summary(self, text: str) -> pd.DataFrame:
        """How many tokens each needs. A word is what stands between spaces."""
        n_words = len(text.split())
        rows = []
        for method, reading in self.found.items():
            own = sum(start != end for start, end in reading.tokens.spans)
            rows.append(
                {
                    "tokenizer": method,
                    "vocabulary": f"{reading.tokenizer.vocab_size:,}",
                    "tokens": len(reading.tokens),
                    "of them added": len(reading.tokens) - own,
                    "tokens a character": _ratio(own, len(text)),
                    "tokens a word": _ratio(own, n_words),
                }
            )
        return pd.DataFrame(rows)


def _ratio(count: int, of: int) -> str:
    return f"{count / of:.2f}" if of else "–"


def read(text: str) -> Readings:
    """Tokenize a text with every tokenizer. Raises OverLimit for a text that is too long."""
    if len(text) > MAX_TOKENIZER_CHARACTERS:
        raise OverLimit(
            f"The text has {len(text):,} characters, {len(text) - MAX_TOKENIZER_CHARACTERS:,} over "
            f"this page's limit of {MAX_TOKENIZER_CHARACTERS}. Shorten it; what you typed is still "
            "in the box."
        )
    found, problems = {}, {}
    for method in METHODS:
        try:
            tokenizer = tokenizer_of(method)
        except models.LOAD_ERRORS as error:
            problems[method] = str(error)
        else:
            found[method] = Reading(method, tokenizer, tokenizer.encode(text))
    return Readings(found, problems)


def tokenizer_of(method: str) -> Tokenizer:
    """The tokenizer alone, without weights and without torch; `models.LOAD_ERRORS` if absent."""
    if method == GPT2:
        from pretrained import gpt2_bpe

        source = pretrained.find("gpt2")
        return gpt2_bpe.gpt2(None if source is None else source.path)
    for name in _SOURCES[method]:
        source = pretrained.find(name)
        if source is not None:
            return _tokenizer(source.path)
    raise LookupError("Its vocabulary comes with the weights, and they are not on this machine.")


@cache
def _tokenizer(path: Path) -> Tokenizer:
    from pretrained.tokens import for_source

    return for_source(path)


def words(reading: Reading) -> tuple[str, ...]:
    """The words that are cut one by one. ValueError where a vocabulary has no such steps."""
    from pretrained.bpe import FastBpe
    from pretrained.gpt2_bpe import Gpt2Bpe
    from pretrained.wordpiece import WordPiece

    if not isinstance(reading.tokenizer, Gpt2Bpe | FastBpe | WordPiece):
        raise ValueError(f"{reading.method} has no steps to show.")
    return reading.tokenizer.words(reading.tokens.text)


@dataclass(frozen=True)
class Step:
    """The parts of a word after one step, and the step in words."""

    chips: list[Chip]
    sentence: str


@dataclass(frozen=True)
class Cut:
    """A word cut step by step. `same` is whether the tokenizer itself ends at the same ids."""

    steps: list[Step]
    table: pd.DataFrame
    ids: tuple[int, ...]
    same: bool


def cut(reading: Reading, word: str) -> Cut:
    """All steps of one of `words(reading)`. Raises ValueError for a word that is too long."""
    from pretrained.wordpiece import WordPiece

    if isinstance(reading.tokenizer, WordPiece):
        return _matches(reading.tokenizer, word)
    return _merges(reading, word)


def _merges(reading: Reading, word: str) -> Cut:
    from pretrained.bpe import FastBpe
    from pretrained.gpt2_bpe import Gpt2Bpe
    from pretrained.merges import merge_steps
    from pretrained.tokens import printable as visible

    tokenizer = reading.tokenizer
    if not isinstance(tokenizer, Gpt2Bpe | FastBpe):
        raise ValueError(f"{reading.method} has no merges to show.")
    merges = merge_steps(word.encode(), tokenizer.merge_ranks)
    steps, rows = [], []
    for number, step in enumerate(merges):
        ids = [tokenizer.id_of(part) for part in step.parts]
        chips = [
            Chip(
                visible(part),
                f"part {place}: id {index}, bytes {part.hex(' ')}",
                chosen=place == step.merged,
            )
            for place, (part, index) in enumerate(zip(step.parts, ids, strict=True))
        ]
        sentence, joined = f"Start: {len(step.parts)} single bytes.", ""
        if step.merged is not None:
            before = merges[number - 1].parts
            joined = " + ".join(visible(p) for p in before[step.merged : step.merged + 2])
            left = len(step.parts)
            sentence = (
                f"Step {number}: “{isolated(joined)}”, merge {step.rank:,} of the list, is the "
                f"earliest that fits; {left} part{'s' * (left != 1)} left."
            )
        steps.append(Step(chips, sentence))
        rows.append(
            {
                "step": number,
                "joined": joined,
                "merge": "" if step.rank is None else f"{step.rank:,}",
                "parts": " | ".join(map(visible, step.parts)),
                "ids": " ".join(map(str, ids)),
            }
        )
    final = tuple(i for i in map(tokenizer.id_of, merges[-1].parts) if i is not None)
    return Cut(steps, pd.DataFrame(rows), final, final == tokenizer.encode(word).ids)


def _matches(tokenizer: Tokenizer, word: str) -> Cut:
    from pretrained.merges import match_steps
    from pretrained.tokens import printable as visible
    from pretrained.wordpiece import WordPiece

    if not isinstance(tokenizer, WordPiece):
        raise ValueError("This vocabulary has no longest matches to show.")
    matches = match_steps(word, tokenizer.id_of)
    steps = [Step(_rest(word, 0), f"Start: {len(word)} characters, nothing matched.")]
    rows: list[dict[str, object]] = []
    for number, match in enumerate(matches, start=1):
        done = matches[:number]
        chips = [
            Chip(visible(m.piece), f"id {m.id}, characters {m.start} to {m.end} of the word",
                 chosen=m is match)
            for m in done
        ]  # fmt: skip
        tried = len(match.tried)
        sentence = (
            f"Step {number}: “{isolated(visible(match.piece))}” is taken; {tried} longer "
            f"piece{'s are' if tried != 1 else ' is'} not in the vocabulary."
        )
        if match.piece == "[UNK]":
            sentence = f"Step {number}: no piece fits, so the whole word becomes [UNK]."
        steps.append(Step([*chips, *_rest(word, match.end)], sentence))
        rows.append(
            {
                "step": number,
                "piece": visible(match.piece),
                "id": match.id,
                "from": match.start,
                "to": match.end,
                "tried before": " ".join(map(visible, match.tried[:8]))
                + (" …" if tried > 8 else ""),
            }
        )
    tokens = tokenizer.encode(word)
    own = tuple(i for i, (start, end) in zip(tokens.ids, tokens.spans, strict=True) if start != end)
    ids = tuple(match.id for match in matches)
    return Cut(steps, pd.DataFrame(rows), ids, ids == own)


def _rest(word: str, start: int) -> list[Chip]:
    from pretrained.tokens import printable as visible

    detail = "not matched yet"
    return [Chip(visible(char), detail, quiet=True) for char in word[start:]]


def word_chips(found: Sequence[str], chosen: int) -> list[Chip]:
    """The words of a text, the chosen one framed."""
    from pretrained.tokens import printable as visible

    return [
        Chip(visible(word), f"word {i}: {len(word.encode())} bytes", chosen=i == chosen)
        for i, word in enumerate(found)
    ]


def token_chips(tokens: Tokens, chosen: int) -> list[Chip]:
    """The tokens of a model, the chosen one framed."""
    return [
        Chip(printable(tokens, i), f"token {i}: id {tokens.ids[i]}", chosen=i == chosen)
        for i in range(len(tokens))
    ]


@dataclass(frozen=True)
class Embedded:
    """The parts of the input embeddings of a text, (T, C) each, float32, read-only.

    `position` is None for a model without position vectors, `segment` for one without segments;
    `normed` is None where the sum itself enters layer 0.
    """

    title: str
    tokens: Tokens
    token: np.ndarray
    position: np.ndarray | None
    segment: np.ndarray | None
    total: np.ndarray
    normed: np.ndarray | None
    difference: float

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        parts = (self.token, self.position, self.segment, self.total, self.normed)
        return sum(part.nbytes for part in parts if part is not None)

    def panels(self, index: int) -> tuple[Panel, ...]:
        """The first columns of every part for one token, in the order in which they are added."""
        named = (
            ("token embedding", self.token),
            ("+ segment embedding", self.segment),
            ("+ position embedding", self.position),
            ("= sum", self.total),
            ("after LayerNorm: enters layer 0", self.normed),
        )
        width = min(COLUMNS, self.token.shape[1])
        return tuple(
            Panel(
                name,
                part[index, :width],
                ("column",),
                cells=np.arange(width),  # a column is one sum: its parts light up together
                positions=(range(width),),
                whole=(part.shape[1],),
            )
            for name, part in named
            if part is not None
        )


_embedded: BoundedCache[Embedded] = BoundedCache(EMBEDDING_CACHE_BYTES, lambda found: found.nbytes)


def embedded(name: str, text: str) -> Embedded:
    """Token, position and segment embeddings of a text in model `name`.

    Raises: OverLimit for too many tokens, ValueError for none; `models.LOAD_ERRORS`.
    """
    return _embedded.get((*models.key(name), text), lambda: _embed(name, text))


def _embed(name: str, text: str) -> Embedded:
    import torch

    from attention_core.embeddings import check_input

    model = models.get(name)
    limit = min(MAX_MAP_TOKENS, model.core.config.context_length)
    tokens = models.encoded(model, text, limit, "this picture")
    check = check_input(model.core, torch.tensor([tokens.ids], device=model.device))
    shape = check.entered.shape[1:]

    def array(part: torch.Tensor | None) -> np.ndarray | None:
        if part is None:
            return None
        # (B, T, C), (T, C) or (C) -> (T, C)
        values = part.reshape(-1, shape[1]).expand(shape).float().cpu().numpy()
        values.setflags(write=False)
        return np.asarray(values)

    parts = check.parts
    token, total = array(parts.token), array(parts.total)
    assert token is not None  # for the type checker: every model has both
    assert total is not None
    return Embedded(
        title=model.spec.title,
        tokens=tokens,
        token=token,
        position=array(parts.position),
        segment=array(parts.segment),
        total=total,
        normed=None if parts.entering is parts.total else array(parts.entering),
        difference=check.difference,
    )


def questions(found: Readings) -> tuple[Question, ...]:
    """Three questions that a tokenizer which is here answers; none without any tokenizer."""
    from pretrained.bpe import FastBpe
    from pretrained.gpt2_bpe import Gpt2Bpe

    for reading in found.found.values():
        if isinstance(reading.tokenizer, Gpt2Bpe | FastBpe):
            return _questions(reading.method, reading.tokenizer)
    return ()


@cache
def _questions(method: str, tokenizer: Gpt2Bpe | FastBpe) -> tuple[Question, ...]:
    from pretrained.merges import merge_steps
    from pretrained.tokens import printable as visible

    def ids(text: str) -> tuple[int, ...]:
        return tokenizer.encode(text).ids

    thumb = "👍🏽"
    n_thumb = len(ids(thumb))
    inside, alone = ids(" sunny"), ids("sunny")
    same = inside == alone
    first = merge_steps(b" sunny", tokenizer.merge_ranks)[1]
    pairs = dict.fromkeys(
        f"{visible(left)} + {visible(right)}"
        for left, right in pairwise(merge_steps(b" sunny", {})[0].parts)
    )
    joined = list(pairs)[first.merged or 0]
    return (
        Question(
            ask=f"A thumbs-up with a skin tone is one sign on screen: {thumb}. How many tokens is "
            f"it for {method}?",
            right=str(n_thumb),
            wrong=tuple(str(n) for n in (1, 2, len(thumb.encode())) if n != n_thumb),
            because=f"It is {len(thumb)} characters and {len(thumb.encode())} bytes; merges left "
            f"{n_thumb} tokens: {', '.join(map(str, ids(thumb)))}.",
        ),
        Question(
            ask=f"Has “sunny” the same token for {method} at the start of a text as after a space?",
            right="Yes, the same" if same else "No, other tokens",
            wrong=("No, other tokens" if same else "Yes, the same",),
            because=f"After a space: {', '.join(map(str, inside))}. At the start: "
            f"{', '.join(map(str, alone))}. The space is a byte of the token.",
        ),
        Question(
            ask=f"“␣sunny” begins as six bytes. Which two neighbours does {method} join first?",
            right=joined,
            wrong=tuple(pair for pair in pairs if pair != joined),
            because=f"Its merge is number {first.rank:,} of the list, the earliest of the five "
            "pairs: neighbours that were frequent in the training text come early.",
        ),
    )
