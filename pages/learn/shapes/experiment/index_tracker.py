"""Track the position of every number through the steps that move it.

Dimension letters: B batch, T tokens, H heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pages.learn.shapes.experiment.named_tensors import BY_HEAD, BY_TOKEN, FLAT, NamedTensor


@dataclass(frozen=True)
class IndexTracker:
    """Tracks the numbers of a (B, T, H*D) tensor by moving their positions the same way.

    first: the column in the step's numbering where the tensor's columns begin.
    """

    batch_size: int
    n_tokens: int
    n_heads: int
    head_dim: int
    width: int
    first: int = 0

    @property
    def rows(self) -> Tensor:
        """(B, T, 1): the position at which each token's row begins."""
        rows = torch.arange(self.batch_size * self.n_tokens) * self.width
        return rows.view(self.batch_size, self.n_tokens, 1)

    def make_tensor(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> NamedTensor:
        """Wrap a tensor that contains the numbers of the flat one in a different order."""
        columns = torch.arange(self.n_heads * self.head_dim)
        heads = columns // self.head_dim * self.head_dim
        cells, groups = self._moved(columns, axes), self._moved(heads, axes)
        return NamedTensor(name, tensor, axes, cells, groups)

    def _moved(self, columns: Tensor, axes: tuple[str, ...]) -> Tensor:
        flat = self.rows + self.first + columns  # (B, T, H*D)
        if axes == FLAT:
            return flat
        unrolled = flat.view(self.batch_size, self.n_tokens, self.n_heads, self.head_dim)
        return unrolled if axes == BY_TOKEN else unrolled.transpose(1, 2)

    @property
    def pairs(self) -> Tensor:
        """(B, H, T, T): each score has the position of its query's token and head."""
        firsts = self._moved(torch.arange(self.n_heads * self.head_dim), BY_HEAD)[..., :1]
        return firsts.expand(-1, -1, -1, self.n_tokens)

    def whole(self, columns: int) -> Tensor:
        """(B, T, columns): positions of numbers that belong to a whole token, not to a head."""
        return (self.rows + self.width - 1).expand(-1, -1, columns)
