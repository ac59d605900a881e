"""Random sequences with a repeated segment, for training and testing the small model.

The start of the segment and the distance to its repeat vary from sequence to sequence. A model
trained on a single distance learns only to look that many tokens back.

Dimension letters: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.checks import require_int

VOCABULARY = 32  # number of distinct tokens
LENGTH = 48  # tokens per sequence
UNSEEN_DISTANCES = (9, 13, 17, 21)  # never used in training
TRAINED_DISTANCES = tuple(n for n in range(6, 23) if n not in UNSEEN_DISTANCES)
ONE_DISTANCE = (12,)  # the same distance in every sequence

PROBE_DISTANCE, PROBE_START, PROBE_LENGTH, PROBE_SEED = 13, 4, 32, 0


@dataclass(frozen=True)
class Repeats:
    """Sequences of random tokens in which a segment is repeated without a gap.

    ids: (B, T), int64. distances: (B), from a token to its repeat, which is also the length of
    the segment. starts: (B), where the first copy begins.
    """

    ids: Tensor
    distances: Tensor
    starts: Tensor

    @property
    def predictable(self) -> Tensor:
        """Boolean mask of the positions whose next token is predictable: (B, T - 1).

        These are the positions of the repeat except its last, which a random token follows.
        """
        positions = torch.arange(self.ids.shape[1] - 1, device=self.ids.device)
        begin = (self.starts + self.distances)[:, None]
        return (positions >= begin) & (positions < begin + self.distances[:, None] - 1)

    def to(self, device: torch.device | str) -> Repeats:
        """Copy the sequences to another device."""
        return Repeats(self.ids.to(device), self.distances.to(device), self.starts.to(device))


def draw(
    n_sequences: int,
    distances: Sequence[int],
    generator: torch.Generator,
    *,
    n_tokens: int = LENGTH,
) -> Repeats:
    """Draw sequences with distances from `distances` and random starts at which both copies fit.

    Raises: ValueError for no sequence, no distance, a distance below 2, or a distance whose two
    copies don't fit into `n_tokens`.
    """
    require_int("n_sequences", n_sequences)
    if not distances or min(distances) < 2 or 2 * max(distances) > n_tokens:
        raise ValueError(
            f"distances must be from 2 to {n_tokens // 2}, so that two copies fit into {n_tokens} "
            f"tokens, got {tuple(distances)}"
        )
    which = torch.randint(len(distances), (n_sequences,), generator=generator)
    n = torch.tensor(distances)[which]  # (B)
    rooms = n_tokens - 2 * n + 1
    starts = (torch.rand(n_sequences, generator=generator) * rooms).long()
    ids = torch.randint(VOCABULARY, (n_sequences, n_tokens), generator=generator)
    return Repeats(_with_second_copy(ids, n, starts), n, starts)


def probe() -> Repeats:
    """The sequence in the picture, with an unseen distance: (1, 32).

    Outside the repeat all its tokens differ, so each has at most one earlier occurrence.
    """
    generator = torch.Generator().manual_seed(PROBE_SEED)
    ids = torch.randperm(VOCABULARY, generator=generator)[None, :PROBE_LENGTH]
    n, starts = torch.tensor([PROBE_DISTANCE]), torch.tensor([PROBE_START])
    return Repeats(_with_second_copy(ids, n, starts), n, starts)


def _with_second_copy(ids: Tensor, n: Tensor, starts: Tensor) -> Tensor:
    """Repeat the n tokens from `starts` on right after themselves: (B, T) -> (B, T)."""
    positions = torch.arange(ids.shape[1])
    begin = (starts + n)[:, None]
    repeated = (positions >= begin) & (positions < begin + n[:, None])
    return ids.gather(1, torch.where(repeated, positions - n[:, None], positions))
