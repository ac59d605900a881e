"""The lectures' own inputs: small embedded sentences and the seeds their numbers come from.

The embeddings are made up by the lectures, three numbers a token; they teach, they mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Example:
    """A sentence with one embedding a token: `embeddings` is (T, d_in), float32."""

    tokens: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    @property
    def embeddings(self) -> Tensor:
        """(T, d_in), a new tensor each time."""
        return torch.tensor(self.rows)


_JOURNEY_ROWS = (
    (0.43, 0.15, 0.89),
    (0.55, 0.87, 0.66),
    (0.57, 0.85, 0.64),
    (0.22, 0.58, 0.33),
    (0.77, 0.25, 0.10),
    (0.05, 0.80, 0.55),
)
# Six tokens: notebook, section 3.3.
JOURNEY = Example(("Your", "journey", "starts", "with", "one", "step"), _JOURNEY_ROWS)
# Nine tokens: the article; its first six rows are the notebook's.
BOY = Example(
    ("Boy", "is", "crying", "because", "he", "wants", "an", "ice", "cream"),
    (*_JOURNEY_ROWS, (0.02, 0.30, 0.47), (0.47, 0.67, 0.64), (0.77, 0.33, 0.70)),
)

# Seeds that the lectures set before they draw their matrices.
SEED_V1, SEED_V2, SEED_ARTICLE = 123, 789, 123
# The article's matrix for dropout: drawn with this seed, dropped by the same stream.
SEED_DROPOUT, DROPOUT_SHAPE = 123, (5, 3)
