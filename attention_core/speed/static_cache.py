"""A cache whose `update` returns the same tensors in every pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attention_core.cache import KVCache
from attention_core.checks import require_int


class StaticCache(KVCache):
    """A `KVCache` that can also write at positions given by a tensor.

    A CUDA graph repeats its kernels with the same shapes and addresses, so the current position has
    to be a tensor on the device, and no shape may depend on it. While `fixed` is set, `update`
    writes at `position` and returns the whole buffers; the caller has to mask the rows after
    `position`. `length` doesn't change then: call `commit_token` or `rewind_to` after each such
    step. Otherwise it's a normal `KVCache`.

    `position` is a tensor (T,) of int64 on the device of the buffers; T is 1 at first.
    Source: the static cache of gpt-fast.
    Raises: ValueError as in `KVCache`.
    """

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.fixed = False
        keys, _ = self.buffers
        self.position = torch.zeros(1, dtype=torch.long, device=keys[0].device)

    def set_step_width(self, n_rows: int) -> None:
        """Set the number of tokens T per fixed pass, starting at the current length.

        Raises: ValueError if the cache has fewer rows.
        """
        require_int("n_rows", n_rows, most=self.max_length)
        self.position = self.length + torch.arange(n_rows, device=self.position.device)

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write k and v (B, H_kv, T, D) and return the buffers (B, H_kv, N, D) if fixed.

        Otherwise as in `KVCache`.
        """
        if not self.fixed:
            return super().update(layer, k, v)
        keys, values = (buffers[layer] for buffers in self.buffers)
        return keys.index_copy_(2, self.position, k), values.index_copy_(2, self.position, v)

    def commit_token(self) -> None:
        """Count one more token, which a fixed `update` has written, as stored."""
        self._length += 1
        self._n_changes += 1

    def rewind_to(self, n_tokens: int) -> None:
        """Count the first `n_tokens` as stored; the next fixed pass writes after them."""
        self._length = n_tokens
        self._n_changes += 1
        torch.arange(n_tokens, n_tokens + len(self.position), out=self.position)
