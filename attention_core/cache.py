"""The key/value cache: memory that the caller owns, never a module.

Source: the preallocated buffers of gpt-fast, the update protocol of transformers. Course notes,
section on the KV cache.
"""

from __future__ import annotations

import torch
from torch import Tensor


class KVCache:
    """Keys and values of all earlier tokens, one pair of preallocated buffers a layer.

    A forward pass calls `update` once for each layer, in order; the new rows count as stored when
    the last layer has written its own. A pass that fails half-way therefore changes nothing.

    The size of a key and of a value may differ, so the same class holds the keys and values of
    multi-head, grouped-query and multi-query attention, or a latent and a rotary key.

    Shapes: `key_shape` and `value_shape` are (H_kv, D); the buffers are
    (B, H_kv, max_length, D). `dtype` and `device` should be those of the model
    (`Transformer.new_cache` sees to it).
    Raises: ValueError if a size is not positive.
    """

    def __init__(
        self,
        n_layers: int,
        batch_size: int,
        max_length: int,
        *,
        key_shape: tuple[int, int],
        value_shape: tuple[int, int] | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        value_shape = key_shape if value_shape is None else value_shape
        sizes = (n_layers, batch_size, max_length, *key_shape, *value_shape)
        if min(sizes) < 1:
            raise ValueError(
                f"cache sizes must be at least 1, got n_layers={n_layers}, "
                f"batch_size={batch_size}, max_length={max_length}, key_shape={key_shape}, "
                f"value_shape={value_shape}"
            )
        self.n_layers = n_layers
        self.batch_size = batch_size
        self.max_length = max_length
        self._length = 0
        self._keys = [
            torch.zeros(
                batch_size, key_shape[0], max_length, key_shape[1], dtype=dtype, device=device
            )
            for _ in range(n_layers)
        ]
        self._values = [
            torch.zeros(
                batch_size, value_shape[0], max_length, value_shape[1], dtype=dtype, device=device
            )
            for _ in range(n_layers)
        ]

    @property
    def length(self) -> int:
        """How many tokens are stored: the position of the next one."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes allocated, for `max_length` tokens, whether stored or not."""
        return sum(t.numel() * t.element_size() for t in self._keys + self._values)

    @property
    def nbytes_used(self) -> int:
        """Bytes that hold stored tokens."""
        return self.nbytes // self.max_length * self._length

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Stored keys and values of one layer, views of (B, H_kv, length, D)."""
        return self._keys[layer][:, :, : self._length], self._values[layer][:, :, : self._length]

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows of T new tokens and return all S = length + T of them, as views.

        Shapes: k and v (B, H_kv, T, D) -> (B, H_kv, S, D).
        Raises: ValueError if the new rows do not fit the buffer in any dimension.
        """
        keys, values = self._keys[layer], self._values[layer]
        start, end = self._length, self._length + k.shape[-2]
        if end > self.max_length:
            raise ValueError(
                f"the cache holds {self._length} of at most {self.max_length} tokens: "
                f"{k.shape[-2]} more do not fit"
            )
        for name, new, buffer in (("keys", k, keys), ("values", v, values)):
            if new.shape[:2] != buffer.shape[:2] or new.shape[-1] != buffer.shape[-1]:
                raise ValueError(
                    f"{name} of shape {tuple(new.shape)} do not fit a cache of shape "
                    f"{tuple(buffer.shape)} (batch, heads, tokens, size)"
                )
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        if layer == self.n_layers - 1:
            self._length = end
        return keys[:, :, :end], values[:, :, :end]

    def crop(self, n_tokens: int) -> None:
        """Forget all but the first `n_tokens`. ValueError if fewer than that are stored."""
        if not 0 <= n_tokens <= self._length:
            raise ValueError(f"cannot crop a cache of {self._length} tokens to {n_tokens}")
        self._length = n_tokens

    def reset(self) -> None:
        """Forget everything; the memory stays allocated."""
        self._length = 0
