"""The place of every number while steps move it: in rows, in heads, in pairs of tokens.

Dimension letters: B batch, T tokens, H heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pages.learn.shapes.experiment.named import BY_HEAD, BY_TOKEN, FLAT, Named


@dataclass(frozen=True)
class Follow:
    """Follows the numbers of a (B, T, H*D) tensor: each step moves their places as it moves them.

    first: the column of the numbering at which the tensor's columns begin.
    """

    batch_size: int
    n_tokens: int
    n_heads: int
    head_dim: int
    width: int
    first: int = 0

    @property
    def rows(self) -> Tensor:
        """(B, T, 1): the place at which the row of each token begins."""
        rows = torch.arange(self.batch_size * self.n_tokens) * self.width
        return rows.view(self.batch_size, self.n_tokens, 1)

    def named(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> Named:
        """A tensor that holds the numbers of the flat one, moved."""
        columns = torch.arange(self.n_heads * self.head_dim)
        heads = columns // self.head_dim * self.head_dim
        cells, groups = self._moved(columns, axes), self._moved(heads, axes)
        return Named(name, tensor, axes, cells, groups)

    def _moved(self, columns: Tensor, axes: tuple[str, ...]) -> Tensor:
        flat = self.rows + self.first + columns  # (B, T, H*D)
        if axes == FLAT:
            return flat
        unrolled = flat.view(self.batch_size, self.n_tokens, self.n_heads, self.head_dim)
        return unrolled if axes == BY_TOKEN else unrolled.transpose(1, 2)

    @property
    def pairs(self) -> Tensor:
        """(B, H, T, T): a score belongs to its query's token and head."""
        firsts = self._moved(torch.arange(self.n_heads * self.head_dim), BY_HEAD)[..., :1]
        return firsts.expand(-1, -1, -1, self.n_tokens)

    def whole(self, columns: int) -> Tensor:
        """(B, T, columns): numbers that belong to their token as a whole."""
        return (self.rows + self.width - 1).expand(-1, -1, columns)
