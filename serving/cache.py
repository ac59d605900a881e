"""Values that are computed once and cached for all visitors.

    @cached(key=lambda name, text: (*models.key(name), text))
    def one_pass(name: str, text: str) -> OnePass: ...

The process has two caches, each with a limit in bytes. `TEXTS` is for results computed from
visitors' texts, and `MODELS` is for models and parts of them, so texts never evict a model. Each
cache evicts its least recently used values first, and trained models last, because loading them
takes seconds.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from serving.limits import TEXTS_BYTES
from serving.memory import memory_bytes

P = ParamSpec("P")
Value = TypeVar("Value")
# A function and the key of one of its values.
EntryKey = tuple["CachedFunction[Any, Any]", Hashable]

# The rest of the memory is for the process itself (PyTorch, transformers and Streamlit need about
# 1 GB), for the tensors of running forward passes, and for other programs.
TOTAL_BYTES = int(0.6 * memory_bytes())


class Cache:
    """Cached values of several functions with a common limit in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.nbytes = max_bytes, 0
        self.entries: OrderedDict[EntryKey, tuple[Any, int]] = OrderedDict()  # value, bytes
        self.computing: set[EntryKey] = set()
        self.changed = threading.Condition()

    def get(self, key: EntryKey) -> Any:
        """Return a cached value and mark it as recently used; None if it isn't cached."""
        with self.changed:
            if key not in self.entries:
                return None
            self.entries.move_to_end(key)
            return self.entries[key][0]

    def get_or_compute(self, key: EntryKey, compute: Callable[[], Any]) -> Any:
        """Return a value; if several threads need the same value, only one computes it."""
        with self.changed:
            self.changed.wait_for(lambda: key not in self.computing)
            if key in self.entries:
                return self.get(key)
            self.computing.add(key)
        try:
            value = compute()
            self._add(key, value, key[0].size(value))
            return value
        finally:
            with self.changed:
                self.computing.remove(key)
                self.changed.notify_all()

    def _add(self, key: EntryKey, value: Any, n_bytes: int) -> None:
        """Evict values until this one fits, and cache it, unless it exceeds the limit itself."""
        if n_bytes > self.max_bytes:
            return
        with self.changed:
            while self.nbytes + n_bytes > self.max_bytes:
                self.evict(min(self.entries, key=lambda key: key[0].evict_last))
            self.entries[key] = value, n_bytes
            self.nbytes += n_bytes

    def evict(self, key: EntryKey) -> None:
        """Remove a value. If it has a `release` method, that frees its memory even while in use."""
        with self.changed:
            value, n_bytes = self.entries.pop(key, (None, 0))  # another thread may have been first
            self.nbytes -= n_bytes
        if hasattr(value, "release"):
            value.release()


TEXTS = Cache(min(TEXTS_BYTES, TOTAL_BYTES // 4))
MODELS = Cache(TOTAL_BYTES - TEXTS.max_bytes)


class CachedFunction(Generic[P, Value]):
    """A function whose results are cached; call it like the function itself.

    Errors aren't cached. Visitors share the results, so treat them as read-only.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, Value]

    def __init__(
        self,
        function: Callable[P, Value],
        key: Callable[..., Hashable],
        size: Callable[[Any], int],
        cache: Cache,
        evict_last: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        self.size, self.evict_last = size, evict_last
        self._key, self._cache = key, cache
        self._is_disabled = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Value:
        """The value for these arguments, computed now if it isn't cached."""
        if self._is_disabled:
            return self.__wrapped__(*args, **kwargs)
        key = self, self._key(*args, **kwargs)
        value: Value = self._cache.get_or_compute(key, lambda: self.__wrapped__(*args, **kwargs))
        return value

    def peek(self, *args: Any, **kwargs: Any) -> Value | None:
        """The cached value for these arguments of `key`, or None; marks it as recently used."""
        return None if self._is_disabled else self._cache.get((self, self._key(*args, **kwargs)))

    def is_cached(self, *args: Any, **kwargs: Any) -> bool:
        """Whether the value for these arguments of `key` is cached."""
        return not self._is_disabled and (self, self._key(*args, **kwargs)) in self._cache.entries

    def _sizes(self) -> dict[EntryKey, int]:
        with self._cache.changed:
            entries = self._cache.entries.items()
            return {key: n_bytes for key, (_, n_bytes) in entries if key[0] is self}

    @property
    def nbytes(self) -> int:
        """Bytes of this function's cached values."""
        return sum(self._sizes().values())

    @property
    def n_cached(self) -> int:
        """Number of this function's cached values."""
        return len(self._sizes())

    def clear(self) -> None:
        """Evict every value of this function."""
        for key in self._sizes():
            self._cache.evict(key)

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Turn caching off inside a `with` block (for tests)."""
        self._is_disabled = True
        try:
            yield
        finally:
            self._is_disabled = False


def cached(
    *,
    key: Callable[..., Hashable],
    size: Callable[[Any], int] | None = None,
    cache: Cache = TEXTS,
    evict_last: bool = False,
) -> Callable[[Callable[P, Value]], CachedFunction[P, Value]]:
    """Decorate a function so that its results are cached.

    key: maps the arguments of a call to the cache key; leave out arguments that don't affect the
    result, such as a progress callback. size: bytes of a value, `size_of` by default. A value that
    exceeds the cache's limit is returned but not cached.
    """
    return lambda function: CachedFunction(function, key, size or size_of, cache, evict_last)


def nbytes_by_name() -> dict[str, int]:
    """Bytes of each function's cached values, by module and qualified name."""
    sizes: Counter[str] = Counter()
    for cache in (TEXTS, MODELS):
        with cache.changed:
            for (function, _), (_, n_bytes) in cache.entries.items():
                sizes[f"{function.__module__}.{function.__qualname__}"] += n_bytes
    return dict(sizes)


def size_of(value: object) -> int:
    """Bytes of a value with all its tensors, arrays, layers, tables and containers.

    Shared memory is counted once. For a view, all the memory that it keeps alive is counted.
    """
    return _size_of(value, set())


def _size_of(value: object, counts: set[int]) -> int:
    if id(value) in counts or value is None:
        return 0
    counts.add(id(value))
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        memory = storage.data_ptr()  # the same for all views of it
        new = memory not in counts
        counts.add(memory)
        return int(storage.nbytes()) if new else 0
    base = getattr(value, "base", None)  # the array or buffer that this array is a view of
    if isinstance(base, np.ndarray | bytes) or hasattr(base, "untyped_storage"):
        return _size_of(base, counts)
    if hasattr(value, "memory_usage"):  # a data frame; deep=True includes its strings
        return int(value.memory_usage(deep=True).sum())
    # a module; quantized weights are in its buffers
    if hasattr(value, "parameters") and hasattr(value, "buffers"):
        stored = (*value.parameters(), *value.buffers())
        return sum(_size_of(tensor, counts) for tensor in stored)
    nbytes = getattr(value, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    parts: list[object] = []
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = list(vars(value).values())
    return sys.getsizeof(value) + sum(_size_of(part, counts) for part in parts)
