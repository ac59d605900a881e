"""A cache whose `update` returns the same tensors in every pass of one shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.checks import require_int


class StaticCache(KVCache):
    """A `KVCache` with a second way to write: T tokens at the positions that a tensor holds.

    A CUDA graph repeats its kernels with the same shapes and addresses, so that the number of the
    step must be a number on the device, and no size may follow from it. While `fixed` is set,
    `update` writes at `position` and returns the whole buffers; whoever reads them has to hide the
    rows behind `position`. `length` does not move then: whoever repeats such a step calls
    `count_token` or `stand_at`. Otherwise it is a plain `KVCache`.

    `position` is a tensor (T,) of int64 on the device of the buffers; T is 1 at first.
    Source: the static cache of gpt-fast.
    Raises: ValueError as of `KVCache`.
    """

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.fixed = False
        keys, _ = self.buffers
        self.position = torch.zeros(1, dtype=torch.long, device=keys[0].device)

    def write_at_once(self, n_rows: int) -> None:
        """Have a fixed pass write so many tokens, T of them, from where the cache stands.

        Raises: ValueError unless the cache has at least so many rows.
        """
        require_int("n_rows", n_rows, most=self.max_length)
        self.position = self.length + torch.arange(n_rows, device=self.position.device)

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Fixed: k and v (B, H_kv, T, D) -> the buffers (B, H_kv, N, D); else as of `KVCache`."""
        if not self.fixed:
            return super().update(layer, k, v)
        keys, values = (buffers[layer] for buffers in self.buffers)
        return keys.index_copy_(2, self.position, k), values.index_copy_(2, self.position, v)

    def count_token(self) -> None:
        """Count the token of one more step as stored, which a fixed `update` has written."""
        self._length += 1
        self._n_changes += 1

    def stand_at(self, n_tokens: int) -> None:
        """Count the first `n_tokens` as stored: the next fixed pass writes behind them."""
        self._length = n_tokens
        self._n_changes += 1
        torch.arange(n_tokens, n_tokens + len(self.position), out=self.position)
