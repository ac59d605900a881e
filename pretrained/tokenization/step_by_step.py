"""Tokenizes one word step by step: byte-pair merges, or WordPiece's longest match.

Doesn't need torch. Sources: Sennrich et al. 2016 (https://arxiv.org/abs/1508.07909) for the merges,
Radford et al. 2019 for bytes instead of characters, Devlin et al. 2018 for WordPiece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Every step checks all pairs, so the total time grows with the square of the length. Real words are
# shorter.
MAX_STEP_BYTES = 96


@dataclass(frozen=True)
class MergeStep:
    """The parts of a word after a merge; the first step is the word before any merge.

    merged: the index of the new part. rank: the index of its merge in the merge list.
    """

    parts: tuple[bytes, ...]
    merged: int | None = None
    rank: int | None = None


def merge_steps(
    piece: bytes, ranks: Mapping[tuple[bytes, bytes], int], *, limit: int = MAX_STEP_BYTES
) -> tuple[MergeStep, ...]:
    """Byte-pair encoding of one word, from its single bytes to its tokens.

    Every step merges the adjacent pair with the lowest rank, the leftmost one if there are several,
    until no pair can be merged. ranks: maps a pair of adjacent parts to its rank in the merge list.
    Raises: ValueError for an empty piece, or one of more than `limit` bytes.
    """
    if not 1 <= len(piece) <= limit:
        raise ValueError(f"The word must have 1 to {limit} bytes, not {len(piece)}.")
    parts = [piece[i : i + 1] for i in range(len(piece))]
    steps = [MergeStep(tuple(parts))]
    while True:
        candidates = [
            (ranks[pair], place)
            for place, pair in enumerate(zip(parts, parts[1:], strict=False))
            if pair in ranks
        ]
        if not candidates:
            return tuple(steps)
        rank, place = min(candidates)  # [first merge]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
        steps.append(MergeStep(tuple(parts), place, rank))


@dataclass(frozen=True)
class MatchStep:
    """A piece that WordPiece matches in a word: characters `start` to `end`.

    piece: the vocabulary entry ("##ny"), or the token for unknown words. tried: longer pieces that
    aren't in the vocabulary, longest first.
    """

    start: int
    end: int
    piece: str
    id: int
    tried: tuple[str, ...]


def match_steps(
    word: str, id_of: Callable[[str], int | None], *, unknown: str = "[UNK]", max_chars: int = 100
) -> tuple[MatchStep, ...]:
    """WordPiece for one word: repeatedly match the longest piece in the vocabulary.

    Pieces after the start of the word begin with "##". If no piece matches, or the word is longer
    than `max_chars`, the whole word becomes the token for unknown words.
    Raises: ValueError for an empty word, or a vocabulary without `unknown`.
    """
    unknown_id = id_of(unknown)
    if not word or unknown_id is None:
        raise ValueError(
            f"The word must not be empty, and the vocabulary must contain {unknown!r}; got a word "
            f"of {len(word)} characters, and the id {unknown_id}."
        )
    if len(word) > max_chars:
        return (MatchStep(0, len(word), unknown, unknown_id, ()),)
    steps: list[MatchStep] = []
    start = 0
    while start < len(word):
        tried: list[str] = []
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            index = id_of(piece)  # [token id]
            if index is not None:
                steps.append(MatchStep(start, end, piece, index, tuple(tried)))
                start = end
                break
            tried.append(piece)
        else:
            return (MatchStep(0, len(word), unknown, unknown_id, tuple(tried)),)
    return tuple(steps)
