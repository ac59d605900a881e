"""The key/value cache: plain memory that belongs to the caller, not an nn.Module.

Sources: the preallocated buffers in gpt-fast, the update protocol in transformers, and the section
on the KV cache in the course notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attention_core.checks import require_int


class KVCache:
    """Keys and values of all earlier tokens, in two preallocated buffers per layer.

    A forward pass calls `update` once per layer, in order. The new rows count as stored once the
    last layer has written its rows, or at the end of `whole_pass` if the pass runs inside it, as a
    model's does. So a pass that fails leaves the cache unchanged.

    Keys and values may have different sizes. The same class therefore works for multi-head,
    grouped-query and multi-query attention, and for the latent and rotary key of latent attention.

    Shapes: `key_shape` and `value_shape` are (H_kv, D); buffers are (B, H_kv, N, D), where N is
    `max_length`. `dtype` and `device` must match the model; `Transformer.new_cache` takes care of
    that. A cache created in inference mode also works outside it.

    Use a cache for one generation at a time; `state` detects changes made elsewhere. Don't share it
    between models: a model with different sizes raises an error, but one with the same sizes would
    silently use the wrong keys and values.

    The cache stores detached tensors. During training, `update` returns copies in which the new
    rows have gradients and the earlier ones are constants.

    Raises: ValueError if a size isn't a whole number of at least 1.
    """

    window: int | None = None  # set by `SlidingCache`

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
        sizes = [("n_layers", n_layers), ("batch_size", batch_size), ("max_length", max_length)]
        sizes += [("key_shape", n) for n in key_shape] + [("value_shape", n) for n in value_shape]
        for name, size in sizes:
            require_int(name, size)
        self.n_layers = n_layers
        self.batch_size = batch_size
        self.max_length = max_length
        self._length = self._n_changes = 0
        self._is_in_pass = False
        self._written: int | None = None  # the length once the pass is done
        self._keys, self._values = (
            [_buffer(batch_size, heads, self.n_rows, size, dtype, device) for _ in range(n_layers)]
            for heads, size in (key_shape, value_shape)
        )

    @property
    def n_rows(self) -> int:
        """N, the number of rows in each buffer."""
        return self.max_length

    @property
    def buffers(self) -> tuple[list[Tensor], list[Tensor]]:
        """The allocated keys and values of each layer, (B, H_kv, N, D), used rows or not."""
        return self._keys, self._values

    @property
    def length(self) -> int:
        """Number of tokens seen so far, which is also the position of the next one."""
        return self._length

    @property
    def state(self) -> tuple[int, int]:
        """The length and the number of changes. Equal states mean the same tokens."""
        return self._length, self._n_changes

    def check_state(self, state: tuple[int, int]) -> None:
        """Raise ValueError if tokens were stored or removed since `state`."""
        if state != self.state:
            raise ValueError(
                f"the cache was changed between two steps of a generation: it had {state[0]} "
                f"tokens and now has {self._length}. Use a separate cache or decoder for each "
                "generation"
            )

    @property
    def n_stored(self) -> int:
        """Number of tokens in memory."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Allocated bytes, including rows that aren't used yet."""
        return sum(t.numel() * t.element_size() for t in self._keys + self._values)

    @property
    def nbytes_used(self) -> int:
        """Bytes of the stored tokens."""
        return self.nbytes // self.n_rows * self.n_stored

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Views of one layer's stored keys and values, (B, H_kv, n_stored, D)."""
        return self._keys[layer][:, :, : self._length], self._values[layer][:, :, : self._length]

    def n_keys(self, n_new: int) -> int:
        """Number of rows that `update` returns for `n_new` new tokens."""
        return self._length + n_new

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows of T new tokens, and return all S = length + T rows as views.

        Shapes: k and v (B, H_kv, T, D) -> (B, H_kv, S, D).
        Raises: ValueError if the layer doesn't exist or the new rows don't fit the buffer.
        """
        self._check_rows(layer, k, v)
        start, end = self._length, self._length + k.shape[-2]
        keys, values = self._keys[layer], self._values[layer]
        keys[:, :, start:end] = k.detach()  # [new keys]
        values[:, :, start:end] = v.detach()  # [new values]
        self._finish_layer(layer, end)
        if k.requires_grad or v.requires_grad:
            # not views: later steps write to the buffers, but backward needs the present values
            return torch.cat((keys[:, :, :start], k), 2), torch.cat((values[:, :, :start], v), 2)
        return keys[:, :, :end], values[:, :, :end]  # [all so far]

    @contextmanager
    def whole_pass(self) -> Iterator[None]:
        """Store the rows written inside the `with` block when it ends without an error.

        A layer or hook can still fail after the last `update`, so the rows count only at the end.
        """
        self._is_in_pass = True
        try:
            yield
            self._count()
        finally:
            self._is_in_pass, self._written = False, None

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` and drop the rest.

        Raises: ValueError if `n_tokens` isn't a whole number or fewer tokens are stored.
        """
        require_int("n_tokens", n_tokens, least=0)
        if n_tokens > self._length:
            raise ValueError(f"cannot crop a cache of {self._length} tokens to {n_tokens}")
        self._length = n_tokens  # [new length]
        self._n_changes += 1

    def reset(self) -> None:
        """Drop all tokens; the memory stays allocated."""
        self._length = 0
        self._n_changes += 1

    def _check_rows(self, layer: int, k: Tensor, v: Tensor) -> None:
        require_int("layer", layer, least=0, most=self.n_layers - 1)
        if self._length + k.shape[-2] > self.max_length:
            raise ValueError(
                f"the cache has {self._length} of at most {self.max_length} tokens, "
                f"so it can't store {k.shape[-2]} more"
            )
        by_name = ("keys", k, self._keys[layer]), ("values", v, self._values[layer])
        for name, new, buffer in by_name:
            if new.shape != (*buffer.shape[:2], k.shape[-2], buffer.shape[-1]):
                raise ValueError(
                    f"{name} of shape {tuple(new.shape)} do not fit {k.shape[-2]} new tokens in a "
                    f"cache of shape {tuple(buffer.shape)} (batch, heads, tokens, size)"
                )
            if new.dtype != buffer.dtype:
                raise ValueError(f"{name} of {new.dtype} do not fit a cache of {buffer.dtype}")

    def _finish_layer(self, layer: int, end: int) -> None:
        if layer == self.n_layers - 1:
            self._written = end
            if not self._is_in_pass:
                self._count()

    def _count(self) -> None:
        """Count the rows that every layer has written."""
        if self._written is not None:
            self._length, self._written = self._written, None
            self._n_changes += 1


class SlidingCache(KVCache):
    """A ring buffer that keeps only the last `window` tokens.

    Position p is stored in row p % window. Rows are always returned in order of position, which
    needs a copy once the ring has wrapped around. `length` still counts every token. Overwritten
    rows are lost, which limits `crop`. With `window=None` nothing is overwritten. N, the number of
    rows per buffer, is `min(window, max_length)`.

    Source: the rolling buffer cache of Mistral, https://arxiv.org/abs/2310.06825.
    Raises: ValueError as in `KVCache`, and if `window` isn't a whole number of at least 1.
    """

    def __init__(
        self,
        n_layers: int,
        batch_size: int,
        max_length: int,
        *,
        window: int | None = None,
        **options: Any,
    ) -> None:
        if window is not None:
            require_int("window", window)
        self.window = window
        self._first = 0  # first position still in memory
        self._pending: list[tuple[Tensor, Tensor]] = []  # rows waiting for the end of the pass
        super().__init__(n_layers, batch_size, max_length, **options)

    @property
    def n_rows(self) -> int:
        """N, the number of rows in each buffer: `min(window, max_length)`."""
        return self.max_length if self.window is None else min(self.window, self.max_length)

    @property
    def n_stored(self) -> int:
        """Number of tokens in memory: `length` minus the overwritten ones."""
        return self._length - self._first

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """One layer's stored keys and values in order, (B, H_kv, n_stored, D).

        Views of the buffers, or copies once the ring has wrapped around.
        """
        keys, values = self._keys[layer], self._values[layer]
        return self._rows(keys, self._first), self._rows(values, self._first)

    def n_keys(self, n_new: int) -> int:
        """Number of rows that `update` returns for `n_new` new tokens."""
        end = self._length + n_new
        fits = self.window is None or end <= self.n_rows
        return end if fits else end - self._first_seen()

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows of T new tokens, and return the rows that they can see.

        If the new rows don't fit the ring, the result is a copy: the rows that the first new token
        can see, followed by all new ones, so S <= window - 1 + T. They're stored only when the last
        layer is done, because a pass that fails halfway and is run again needs the rows they would
        overwrite.

        Shapes and errors as in `KVCache.update`.
        """
        end = self._length + k.shape[-2]
        if end <= self.n_rows:
            self._pending = []  # left over from a pass that failed
            return super().update(layer, k, v)
        self._check_rows(layer, k, v)
        first, n_kept = self._first_seen(), min(k.shape[2], self.n_rows)
        visible = tuple(
            torch.cat((self._rows(buffer, first), new), dim=2)
            for buffer, new in ((self._keys[layer], k), (self._values[layer], v))
        )
        # copies: a view would keep all rows of a long prompt in memory until the last layer
        self._pending[layer:] = [
            (k.detach()[:, :, -n_kept:].clone(), v.detach()[:, :, -n_kept:].clone())
        ]
        self._finish_layer(layer, end)
        return visible[0], visible[1]

    @contextmanager
    def whole_pass(self) -> Iterator[None]:
        """Same as in `KVCache`; also drops rows that weren't stored."""
        try:
            with super().whole_pass():
                yield
        finally:
            self._pending = []

    def crop(self, n_tokens: int) -> None:
        """Keep the first `n_tokens` and drop the rest.

        Once the ring has wrapped around, you can only go back by one token, because the next one
        needs window - 1 earlier tokens, or to 0.
        Raises: ValueError as in `KVCache`, and if the next token would need a row that was
        overwritten.
        """
        require_int("n_tokens", n_tokens, least=0)
        if self.window is not None and 0 < n_tokens <= self._length:
            needed = max(0, n_tokens - self.window + 1)
            if needed < self._first:
                raise ValueError(
                    f"cannot crop to {n_tokens} tokens: the next one needs those from position "
                    f"{needed} on, but a window of {self.window} keeps only positions "
                    f"{self._first} to {self._length - 1}"
                )
        super().crop(n_tokens)
        self._first = self._first if n_tokens else 0

    def reset(self) -> None:
        """Drop all tokens; the memory stays allocated."""
        super().reset()
        self._first, self._pending = 0, []

    def _count(self) -> None:
        """Store the pending rows, and count the rows that every layer has written."""
        end = self._written
        super()._count()
        if end is None:
            return
        for pending, keys, values in zip(self._pending, self._keys, self._values, strict=False):
            for new, buffer in zip(pending, (keys, values), strict=True):
                n_kept = new.shape[2]
                start = (end - n_kept) % self.n_rows  # [oldest row]
                n_before = min(n_kept, self.n_rows - start)  # rows before the ring wraps around
                buffer[:, :, start : start + n_before] = new[:, :, :n_before]
                buffer[:, :, : n_kept - n_before] = new[:, :, n_before:]
        self._pending = []
        self._first = max(self._first, end - self.n_rows)

    def _first_seen(self) -> int:
        """First stored position that the next token can see when the ring is full."""
        return max(self._first, self._length - self.n_rows + 1)

    def _rows(self, buffer: Tensor, first: int) -> Tensor:
        """The rows of positions `first` to `length` - 1, in order."""
        start = first % self.n_rows
        end = start + self._length - first
        if end <= self.n_rows:
            return buffer[:, :, start:end]
        return torch.cat((buffer[:, :, start:], buffer[:, :, : end - self.n_rows]), dim=2)


@torch.inference_mode(False)  # a buffer created in inference mode can't be written outside it
def _buffer(
    batch_size: int,
    n_heads: int,
    n_rows: int,
    size: int,
    dtype: torch.dtype,
    device: torch.device | str | None,
) -> Tensor:
    return torch.zeros(batch_size, n_heads, n_rows, size, dtype=dtype, device=device)
