"""The key/value cache: memory that the caller owns, never a module.

Source: the preallocated buffers of gpt-fast, the update protocol of transformers. Course notes,
section on the KV cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attention_core.checks import require_int


class KVCache:
    """Keys and values of all earlier tokens, one pair of preallocated buffers a layer.

    A forward pass calls `update` once for each layer, in order; the new rows count as stored when
    the last layer has written its own, or at the end of `whole_pass`, which a model's pass runs in.
    A pass that fails anywhere therefore changes nothing.

    The size of a key and of a value may differ, so the same class holds the keys and values of
    multi-head, grouped-query and multi-query attention, or a latent and a rotary key.

    Shapes: `key_shape` and `value_shape` are (H_kv, D); the buffers are (B, H_kv, N, D), where N is
    `max_length`. `dtype` and `device` should be those of the model (`Transformer.new_cache` sees to
    it). A cache made in inference mode works outside it too.
    A cache belongs to one generation at a time, which finds out if something else changes it
    (`state`), and to one model. A model of another shape refuses it; another model of the same
    shape would go on with the wrong keys and values, so don't hand it one.
    No gradient: what is stored is detached. While training, `update` returns copies in which the
    new rows have their gradients and the earlier ones are constants.
    Raises: ValueError if a size is not a whole number of at least 1.
    """

    window: int | None = None  # a `SlidingCache` has one

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
        self._written: int | None = None  # the length, once the rows of all layers count
        self._keys, self._values = (
            [_buffer(batch_size, heads, self.n_rows, size, dtype, device) for _ in range(n_layers)]
            for heads, size in (key_shape, value_shape)
        )

    @property
    def n_rows(self) -> int:
        """N, the rows of every buffer."""
        return self.max_length

    @property
    def buffers(self) -> tuple[list[Tensor], list[Tensor]]:
        """The memory itself, keys and values of each layer: (B, H_kv, N, D), stored or not."""
        return self._keys, self._values

    @property
    def length(self) -> int:
        """How many tokens have been stored: the position of the next one."""
        return self._length

    @property
    def state(self) -> tuple[int, int]:
        """The length, and how often it was set: equal states hold the same tokens."""
        return self._length, self._n_changes

    def check_state(self, state: tuple[int, int]) -> None:
        """Raise ValueError, with both lengths, if tokens were stored or removed since `state`."""
        if state != self.state:
            raise ValueError(
                f"the cache was changed between two steps of a generation: it had {state[0]} "
                f"tokens and now has {self._length}. Each generation needs a cache or a decoder of "
                "its own"
            )

    @property
    def n_stored(self) -> int:
        """How many tokens lie in memory."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes allocated, whether rows are stored or not."""
        return sum(t.numel() * t.element_size() for t in self._keys + self._values)

    @property
    def nbytes_used(self) -> int:
        """Bytes that hold stored tokens."""
        return self.nbytes // self.n_rows * self.n_stored

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Stored keys and values of one layer as views, (B, H_kv, n_stored, D)."""
        return self._keys[layer][:, :, : self._length], self._values[layer][:, :, : self._length]

    def n_keys(self, n_new: int) -> int:
        """How many rows `update` will return for so many new tokens."""
        return self._length + n_new

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows of T new tokens and return all S = length + T of them, as views.

        Shapes: k and v (B, H_kv, T, D) -> (B, H_kv, S, D).
        Raises: ValueError if there is no such layer, or the new rows do not fit the buffer.
        """
        self._check_rows(layer, k, v)
        start, end = self._length, self._length + k.shape[-2]
        keys, values = self._keys[layer], self._values[layer]
        keys[:, :, start:end] = k.detach()  # [new keys]
        values[:, :, start:end] = v.detach()  # [new values]
        self._finish_layer(layer, end)
        if k.requires_grad or v.requires_grad:
            # no views: a later step writes to the buffers, and backward needs them as they are now
            return torch.cat((keys[:, :, :start], k), 2), torch.cat((values[:, :, :start], v), 2)
        return keys[:, :, :end], values[:, :, :end]  # [all so far]

    @contextmanager
    def whole_pass(self) -> Iterator[None]:
        """Count the rows that are written inside as stored at its end, unless an error is raised.

        A hook or a layer may still fail after the last `update`.
        """
        self._is_in_pass = True
        try:
            yield
            self._count()
        finally:
            self._is_in_pass, self._written = False, None

    def crop(self, n_tokens: int) -> None:
        """Forget all but the first `n_tokens`.

        Raises: ValueError for no whole number, or if fewer tokens are stored.
        """
        require_int("n_tokens", n_tokens, least=0)
        if n_tokens > self._length:
            raise ValueError(f"cannot crop a cache of {self._length} tokens to {n_tokens}")
        self._length = n_tokens  # [new length]
        self._n_changes += 1

    def reset(self) -> None:
        """Forget everything; the memory stays allocated."""
        self._length = 0
        self._n_changes += 1

    def _check_rows(self, layer: int, k: Tensor, v: Tensor) -> None:
        require_int("layer", layer, least=0, most=self.n_layers - 1)
        if self._length + k.shape[-2] > self.max_length:
            raise ValueError(
                f"the cache holds {self._length} of at most {self.max_length} tokens: "
                f"no room for {k.shape[-2]} more"
            )
        named = ("keys", k, self._keys[layer]), ("values", v, self._values[layer])
        for name, new, buffer in named:
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
        """Count the rows that all layers have written."""
        if self._written is not None:
            self._length, self._written = self._written, None
            self._n_changes += 1


class SlidingCache(KVCache):
    """A cache that keeps the last `window` tokens only: a ring of rows.

    The row of position p is p modulo the window. Rows come out in the order of their positions all
    the same; once the ring has been round, that takes a copy. `length` goes on counting every
    token. What has been written over is lost, which limits `crop`. Without a window nothing is ever
    written over. N, the rows of a buffer, is the window or `max_length` if that is less.

    Source: Mistral, https://arxiv.org/abs/2310.06825, the rolling buffer cache.
    Raises: ValueError as of `KVCache`, and for a window that is not a whole number of at least 1.
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
        self._first = 0  # the first position still stored
        self._pending: list[tuple[Tensor, Tensor]] = []  # rows that are yet to be stored
        super().__init__(n_layers, batch_size, max_length, **options)

    @property
    def n_rows(self) -> int:
        """N, the rows of every buffer: the window, or `max_length` if that is less."""
        return self.max_length if self.window is None else min(self.window, self.max_length)

    @property
    def n_stored(self) -> int:
        """How many tokens lie in memory: `length`, or fewer where the window has passed them."""
        return self._length - self._first

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """Stored keys and values of one layer, (B, H_kv, n_stored, D) in the order of positions.

        Views of the buffers, or copies once the ring has been round.
        """
        keys, values = self._keys[layer], self._values[layer]
        return self._rows(keys, self._first), self._rows(values, self._first)

    def n_keys(self, n_new: int) -> int:
        """How many rows `update` will return for so many new tokens."""
        end = self._length + n_new
        fits = self.window is None or end <= self.n_rows
        return end if fits else end - self._first_seen()

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows of T new tokens and return those that they may see.

        Where they do not fit the ring any more, the rows that the first of the new tokens may see
        and all the new ones are returned, as copies; S is then at most window - 1 + T. They are
        stored only when the last layer has its rows: a pass that fails half-way may be run again,
        and then needs the rows it would write over.

        Shapes and errors as of `KVCache.update`.
        """
        end = self._length + k.shape[-2]
        if end <= self.n_rows:
            self._pending = []  # of a longer pass that failed
            return super().update(layer, k, v)
        self._check_rows(layer, k, v)
        first, n_kept = self._first_seen(), min(k.shape[2], self.n_rows)
        visible = tuple(
            torch.cat((self._rows(buffer, first), new), dim=2)
            for buffer, new in ((self._keys[layer], k), (self._values[layer], v))
        )
        # copies: a view of a long prompt's rows would keep all of them until the last layer
        self._pending[layer:] = [
            (k.detach()[:, :, -n_kept:].clone(), v.detach()[:, :, -n_kept:].clone())
        ]
        self._finish_layer(layer, end)
        return visible[0], visible[1]

    @contextmanager
    def whole_pass(self) -> Iterator[None]:
        """As of `KVCache`; rows that are not counted are let go."""
        try:
            with super().whole_pass():
                yield
        finally:
            self._pending = []

    def crop(self, n_tokens: int) -> None:
        """Forget all but the first `n_tokens`.

        A ring that has been round holds no more than the window: it can go back by one token, whose
        successor needs only window - 1 earlier ones, or to 0.
        Raises: ValueError as of `KVCache`, and if the next token would need one that is lost.
        """
        require_int("n_tokens", n_tokens, least=0)
        if self.window is not None and 0 < n_tokens <= self._length:
            needed = max(0, n_tokens - self.window + 1)
            if needed < self._first:
                raise ValueError(
                    f"cannot crop to {n_tokens} tokens: the next one needs those from position "
                    f"{needed} on, but a window of {self.window} has kept only positions "
                    f"{self._first} to {self._length - 1}"
                )
        super().crop(n_tokens)
        self._first = self._first if n_tokens else 0

    def reset(self) -> None:
        """Forget everything; the memory stays allocated."""
        super().reset()
        self._first, self._pending = 0, []

    def _count(self) -> None:
        """Store the rows that are pending, and count what all layers have written."""
        end = self._written
        super()._count()
        if end is None:
            return
        for pending, keys, values in zip(self._pending, self._keys, self._values, strict=False):
            for new, buffer in zip(pending, (keys, values), strict=True):
                n_kept = new.shape[2]
                start = (end - n_kept) % self.n_rows  # [oldest row]
                n_before = min(n_kept, self.n_rows - start)  # rows before the ring starts again
                buffer[:, :, start : start + n_before] = new[:, :, :n_before]
                buffer[:, :, : n_kept - n_before] = new[:, :, n_before:]
        self._pending = []
        self._first = max(self._first, end - self.n_rows)

    def _first_seen(self) -> int:
        """The first stored position that the next token may see, where the ring is full."""
        return max(self._first, self._length - self.n_rows + 1)

    def _rows(self, buffer: Tensor, first: int) -> Tensor:
        """The rows of the positions from `first` to `length`, in their order."""
        start = first % self.n_rows
        end = start + self._length - first
        if end <= self.n_rows:
            return buffer[:, :, start:end]
        return torch.cat((buffer[:, :, start:], buffer[:, :, : end - self.n_rows]), dim=2)


@torch.inference_mode(False)  # a buffer made in inference mode could not be written outside it
def _buffer(
    batch_size: int,
    n_heads: int,
    n_rows: int,
    size: int,
    dtype: torch.dtype,
    device: torch.device | str | None,
) -> Tensor:
    return torch.zeros(batch_size, n_heads, n_rows, size, dtype=dtype, device=device)
