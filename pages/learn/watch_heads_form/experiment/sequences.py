"""Random sequences in which a segment comes twice: what the small model is trained and tested on.

Where the repeat begins and how far it lies behind the first copy change from sequence to sequence.
A model that is trained on one distance alone learns to look that far back, whatever stands there.

Dimension letters: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_int

VOCABULARY = 32  # different tokens
LENGTH = 48  # tokens of a sequence
UNSEEN_DISTANCES = (9, 13, 17, 21)  # never trained on
TRAINED_DISTANCES = tuple(n for n in range(6, 23) if n not in UNSEEN_DISTANCES)
ONE_DISTANCE = (12,)  # the trap: the same distance in every sequence

PROBE_DISTANCE, PROBE_START, PROBE_LENGTH, PROBE_SEED = 13, 4, 32, 0


@dataclass(frozen=True)
class Repeats:
    """Sequences of random tokens in each of which one segment comes twice, without a gap.

    ids: (B, T) of int64. distances: (B), from a token to its repeat, which is also the length of
    the segment. starts: (B), where the first copy begins.
    """

    ids: Tensor
    distances: Tensor
    starts: Tensor

    @property
    def counted(self) -> Tensor:
        """Which guesses can be known: (B, T - 1) of bool, by the position that guesses.

        Those of the repeat, but for its last token, behind which a random one comes.
        """
        positions = torch.arange(self.ids.shape[1] - 1, device=self.ids.device)
        begin = (self.starts + self.distances)[:, None]
        return (positions >= begin) & (positions < begin + self.distances[:, None] - 1)

    def to(self, device: torch.device | str) -> Repeats:
        """The same on another device."""
        return Repeats(self.ids.to(device), self.distances.to(device), self.starts.to(device))


def draw(
    n_sequences: int,
    distances: Sequence[int],
    generator: torch.Generator,
    *,
    n_tokens: int = LENGTH,
) -> Repeats:
    """Draw sequences: the distance of each from `distances`, its start wherever both copies fit.

    Raises: ValueError for no sequence, no distance, a distance below 2, or one whose two copies do
    not fit `n_tokens`.
    """
    require_int("n_sequences", n_sequences)
    if not distances or min(distances) < 2 or 2 * max(distances) > n_tokens:
        raise ValueError(
            f"distances must be from 2 to {n_tokens // 2}, so that two copies fit {n_tokens} "
            f"tokens, got {tuple(distances)}"
        )
    which = torch.randint(len(distances), (n_sequences,), generator=generator)
    n = torch.tensor(distances)[which]  # (B)
    rooms = n_tokens - 2 * n + 1
    starts = (torch.rand(n_sequences, generator=generator) * rooms).long()
    ids = torch.randint(VOCABULARY, (n_sequences, n_tokens), generator=generator)
    return Repeats(_with_second_copy(ids, n, starts), n, starts)


def probe() -> Repeats:
    """The one sequence whose attention is drawn: a distance never trained on, (1, 32).

    Its tokens all differ but for the repeat, so that each has one earlier occurrence at most.
    """
    generator = torch.Generator().manual_seed(PROBE_SEED)
    ids = torch.randperm(VOCABULARY, generator=generator)[None, :PROBE_LENGTH]
    n, starts = torch.tensor([PROBE_DISTANCE]), torch.tensor([PROBE_START])
    return Repeats(_with_second_copy(ids, n, starts), n, starts)


def _with_second_copy(ids: Tensor, n: Tensor, starts: Tensor) -> Tensor:
    """Overwrite the n tokens behind the first n from `starts` on with these: (B, T) -> (B, T)."""
    positions = torch.arange(ids.shape[1])
    begin = (starts + n)[:, None]
    repeated = (positions >= begin) & (positions < begin + n[:, None])
    return ids.gather(1, torch.where(repeated, positions - n[:, None], positions))
