"""Tokenize one word step by step: BPE merges or WordPiece's longest matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.tokens.tokenizers import TokenizedText
from ui.canvas.chips import Chip
from ui.text.formatting import plural
from ui.text.isolated import isolated

if TYPE_CHECKING:
    from pretrained import Tokenizer


def words(tokenized: TokenizedText) -> tuple[str, ...]:
    """Split a text into the words to tokenize; ValueError for tokenizers without such steps."""
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe
    from pretrained.tokenization.wordpiece import WordPiece

    if not isinstance(tokenized.tokenizer, Gpt2Bpe | FastBpe | WordPiece):
        raise ValueError(f"{tokenized.method} doesn't tokenize step by step.")
    return tokenized.tokenizer.words(tokenized.tokens.text)


@dataclass(frozen=True)
class SplitStep:
    """The parts of a word after one step, and a sentence about the step."""

    chips: list[Chip]
    sentence: str


@dataclass(frozen=True)
class WordSplit:
    """A word tokenized step by step; same: whether the tokenizer returns the same ids."""

    steps: list[SplitStep]
    table: pd.DataFrame
    ids: tuple[int, ...]
    same: bool


def split_word(tokenized: TokenizedText, word: str) -> WordSplit:
    """Tokenize one of `words(reading)` in steps; ValueError for a word that is too long."""
    from pretrained.tokenization.wordpiece import WordPiece

    if isinstance(tokenized.tokenizer, WordPiece):
        return _matches(tokenized.tokenizer, word)
    return _merges(tokenized, word)


def _merges(tokenized: TokenizedText, word: str) -> WordSplit:
    from pretrained.tokenization.bpe import FastBpe
    from pretrained.tokenization.gpt2 import Gpt2Bpe
    from pretrained.tokenization.step_by_step import merge_steps
    from pretrained.tokenization.tokens import printable as visible

    tokenizer = tokenized.tokenizer
    if not isinstance(tokenizer, Gpt2Bpe | FastBpe):
        raise ValueError(f"{tokenized.method} doesn't use merges.")
    merges = merge_steps(word.encode(), tokenizer.merge_ranks)
    steps, rows = [], []
    for number, step in enumerate(merges):
        ids = [tokenizer.id_of(part) for part in step.parts]
        chips = [
            Chip(
                visible(part),
                f"part {place}: id {index}, bytes (hex) {part.hex(' ')}",
                selected=place == step.merged,
            )
            for place, (part, index) in enumerate(zip(step.parts, ids, strict=True))
        ]
        sentence, joined = f"Start: {plural(len(step.parts), 'byte')}, not merged yet.", ""
        if step.merged is not None:
            before = merges[number - 1].parts
            joined = " + ".join(visible(p) for p in before[step.merged : step.merged + 2])
            sentence = (
                f"Step {number}: join “{isolated(joined)}”. Of all merges that fit here, the "
                f"tokenizer learned this one first (merge {step.rank:,}). Now there "
                f"{'is' if len(step.parts) == 1 else 'are'} {plural(len(step.parts), 'part')}."
            )
        steps.append(SplitStep(chips, sentence))
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
        raise ValueError("This tokenizer doesn't use longest matches.")
    matches = match_steps(word, tokenizer.id_of)
    start = f"Start: {plural(len(word), 'character')}, not matched yet."
    steps = [SplitStep(_rest(word, 0), start)]
    rows: list[dict[str, object]] = []
    for number, match in enumerate(matches, start=1):
        matches_so_far = matches[:number]
        chips = [
            Chip(
                visible(m.piece),
                f"id {m.id}, characters {m.start} to {m.end} of the word",
                selected=m is match,
            )
            for m in matches_so_far
        ]
        tried = len(match.tried)
        sentence = (
            f"Step {number}: “{isolated(visible(match.piece))}” is the longest piece in the "
            f"vocabulary that fits here. {plural(tried, 'longer piece')} "
            f"{'was' if tried == 1 else 'were'} tried before it."
        )
        if match.piece == "[UNK]":
            sentence = f"Step {number}: no piece matches, so the whole word becomes [UNK]."
        steps.append(SplitStep([*chips, *_rest(word, match.end)], sentence))
        rows.append(
            {
                "step": number,
                "piece": visible(match.piece),
                "id": match.id,
                "start": match.start,
                "end": match.end,
                "tried first": " ".join(map(visible, match.tried[:8]))
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
    return [Chip(visible(char), detail, muted=True) for char in word[start:]]


def word_chips(split_words: Sequence[str], choice: int) -> list[Chip]:
    """Make a chip per word, with a frame around the chosen one."""
    from pretrained.tokenization.tokens import printable as visible

    return [
        Chip(visible(word), f"word {i}: {plural(len(word.encode()), 'byte')}", selected=i == choice)
        for i, word in enumerate(split_words)
    ]
