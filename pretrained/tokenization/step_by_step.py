"""How a tokenizer cuts one word, step by step: byte-pair merges, and WordPiece's longest match.

Sources: Sennrich et al. 2016 (https://arxiv.org/abs/1508.07909) for the merges, Radford et al. 2019
for bytes instead of characters; Devlin et al. 2018 for WordPiece. No tensors, no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Every step looks at all pairs, so its time grows with the length; words are shorter than this.
MAX_STEP_BYTES = 96


@dataclass(frozen=True)
class MergeStep:
    """The parts of a word after one merge; the first step has merged nothing yet.

    merged: which part is new. rank: the place of its merge in the learned list, 0 the first.
    """

    parts: tuple[bytes, ...]
    merged: int | None = None
    rank: int | None = None


def merge_steps(
    piece: bytes, ranks: Mapping[tuple[bytes, bytes], int], *, limit: int = MAX_STEP_BYTES
) -> tuple[MergeStep, ...]:
    """Byte-pair encoding of one word, from its single bytes to its tokens.

    Of all neighbours that have a merge, those with the lowest rank are joined (the leftmost first),
    until no neighbours have one. `ranks` maps a pair of neighbours to its place in the list.
    Raises: ValueError for a piece of more than `limit` bytes, or of none.
    """
    if not 1 <= len(piece) <= limit:
        raise ValueError(f"{len(piece)} bytes cannot be shown step by step; 1 to {limit} can.")
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
    """One piece that WordPiece takes from a word: characters `start` to `end`.

    piece: as the vocabulary spells it ("##ny"), or the token for unknown words. tried: longer
    pieces that are not in the vocabulary, longest first.
    """

    start: int
    end: int
    piece: str
    id: int
    tried: tuple[str, ...]


def match_steps(
    word: str, id_of: Callable[[str], int | None], *, unknown: str = "[UNK]", max_chars: int = 100
) -> tuple[MatchStep, ...]:
    """WordPiece of one word: again and again the longest piece of the vocabulary that fits.

    A piece that does not begin the word is spelt with "##". Where nothing fits, or the word is
    longer than `max_chars`, the whole word becomes the one token for unknown words.
    Raises: ValueError for a word of no characters, or a vocabulary without `unknown`.
    """
    unknown_id = id_of(unknown)
    if not word or unknown_id is None:
        raise ValueError(f"nothing to match: {len(word)} characters, {unknown!r} is {unknown_id}")
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
