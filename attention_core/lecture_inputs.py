"""Inputs from the lectures: small embedded sentences and random seeds.

The lectures made up these embeddings, three numbers per token, for teaching. They carry no meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Example:
    """A sentence with one embedding per token: `embeddings` is (T, d_in), float32."""

    tokens: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    @property
    def embeddings(self) -> Tensor:
        """The embeddings (T, d_in), a new tensor each time."""
        return torch.tensor(self.rows)


_JOURNEY_ROWS = (
    (0.43, 0.15, 0.89),
    (0.55, 0.87, 0.66),
    (0.57, 0.85, 0.64),
    (0.22, 0.58, 0.33),
    (0.77, 0.25, 0.10),
    (0.05, 0.80, 0.55),
)
# Six tokens, from section 3.3 of the notebook.
JOURNEY = Example(("Your", "journey", "starts", "with", "one", "step"), _JOURNEY_ROWS)
# Nine tokens, from the article. The first six rows are the same as the notebook's.
BOY = Example(
    ("Boy", "is", "crying", "because", "he", "wants", "an", "ice", "cream"),
    (*_JOURNEY_ROWS, (0.02, 0.30, 0.47), (0.47, 0.67, 0.64), (0.77, 0.33, 0.70)),
)

# The seeds that the lectures set before drawing their matrices.
SEED_V1, SEED_V2, SEED_ARTICLE = 123, 789, 123
# The article's dropout example: this seed draws the matrix and then the dropped entries.
SEED_DROPOUT, DROPOUT_SHAPE = 123, (5, 3)
