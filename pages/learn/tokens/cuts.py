"""One word cut step by step: merges of BPE, longest matches of WordPiece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.tokens.tokenizers import TokenizedText
from ui.canvas.chips import Chip
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from pretrained import Tokenizer


def words(reading: TokenizedText) -> tuple[str, ...]:
    """The words that are cut one by one. ValueError where a vocabulary has no such steps."""
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe
    from pretrained.tokenization.wordpiece import WordPiece

    if not isinstance(reading.tokenizer, Gpt2Bpe | FastBpe | WordPiece):
        raise ValueError(f"{reading.method} has no steps to show.")
    return reading.tokenizer.words(reading.tokens.text)


@dataclass(frozen=True)
class CutStep:
    """The parts of a word after one step, and the step in words."""

    chips: list[Chip]
    sentence: str


@dataclass(frozen=True)
class WordSplit:
    """A word cut step by step. `same` is whether the tokenizer itself ends at the same ids."""

    steps: list[CutStep]
    table: pd.DataFrame
    ids: tuple[int, ...]
    same: bool


def cut(reading: TokenizedText, word: str) -> WordSplit:
    """All steps of one of `words(reading)`. Raises ValueError for a word that is too long."""
    from pretrained.tokenization.wordpiece import WordPiece

    if isinstance(reading.tokenizer, WordPiece):
        return _matches(reading.tokenizer, word)
    return _merges(reading, word)


def _merges(reading: TokenizedText, word: str) -> WordSplit:
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe
    from pretrained.tokenization.step_by_step import merge_steps
    from pretrained.tokenization.tokens import printable as visible

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
        steps.append(CutStep(chips, sentence))
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
    return WordSplit(steps, pd.DataFrame(rows), final, final == tokenizer.encode(word).ids)


def _matches(tokenizer: Tokenizer, word: str) -> WordSplit:
    from pretrained.tokenization.step_by_step import match_steps
    from pretrained.tokenization.tokens import printable as visible
    from pretrained.tokenization.wordpiece import WordPiece

    if not isinstance(tokenizer, WordPiece):
        raise ValueError("This vocabulary has no longest matches to show.")
    matches = match_steps(word, tokenizer.id_of)
    steps = [CutStep(_rest(word, 0), f"Start: {len(word)} characters, nothing matched.")]
    rows: list[dict[str, object]] = []
    for number, match in enumerate(matches, start=1):
        matches_so_far = matches[:number]
        chips = [
            Chip(
                visible(m.piece),
                f"id {m.id}, characters {m.start} to {m.end} of the word",
                chosen=m is match,
            )
            for m in matches_so_far
        ]
        tried = len(match.tried)
        sentence = (
            f"Step {number}: “{isolated(visible(match.piece))}” is taken; {tried} longer "
            f"piece{'s are' if tried != 1 else ' is'} not in the vocabulary."
        )
        if match.piece == "[UNK]":
            sentence = f"Step {number}: no piece fits, so the whole word becomes [UNK]."
        steps.append(CutStep([*chips, *_rest(word, match.end)], sentence))
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
    return WordSplit(steps, pd.DataFrame(rows), ids, ids == own)


def _rest(word: str, start: int) -> list[Chip]:
    from pretrained.tokenization.tokens import printable as visible

    detail = "not matched yet"
    return [Chip(visible(char), detail, quiet=True) for char in word[start:]]


def word_chips(split_words: Sequence[str], chosen: int) -> list[Chip]:
    """The words of a text as chips, with a frame around the chosen word."""
    from pretrained.tokenization.tokens import printable as visible

    return [
        Chip(visible(word), f"word {i}: {len(word.encode())} bytes", chosen=i == chosen)
        for i, word in enumerate(split_words)
    ]
