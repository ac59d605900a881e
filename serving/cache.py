"""Values that are computed once and cached for all visitors.

    @cached(key=lambda name, text: (*models.key(name), text))
    def one_pass(name: str, text: str) -> OnePass: ...

Two byte limits hold for the whole process: `TEXTS` has what visitors' texts leave behind, so that
texts never evict a model, and `MODELS` has models of all kinds and parts of them. Each evicts its
least recently used values first, and trained models last, because they take seconds to load.
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

# The rest of the memory is for the process itself (PyTorch, transformers and Streamlit take about
# 1 GB), for the tensors of a running forward pass, and for other programs.
TOTAL_BYTES = int(0.6 * memory_bytes())


class Cache:
    """Values of several functions within one byte limit."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.nbytes = max_bytes, 0
        self.entries: OrderedDict[EntryKey, tuple[Any, int]] = OrderedDict()  # value, bytes
        self.computing: set[EntryKey] = set()
        self.changed = threading.Condition()

    def get(self, key: EntryKey) -> Any:
        """A cached value, which is then the most recently used one; None if it is missing."""
        with self.changed:
            if key not in self.entries:
                return None
            self.entries.move_to_end(key)
            return self.entries[key][0]

    def get_or_compute(self, key: EntryKey, compute: Callable[[], Any]) -> Any:
        """A value; threads that ask for the same one wait until one of them has computed it."""
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
        """Cache a value unless it is larger than the limit; evict others until it fits."""
        if n_bytes > self.max_bytes:
            return
        with self.changed:
            while self.nbytes + n_bytes > self.max_bytes:
                self.evict(min(self.entries, key=lambda key: key[0].evict_last))
            self.entries[key] = value, n_bytes
            self.nbytes += n_bytes

    def evict(self, key: EntryKey) -> None:
        """Forget a value; one with a method `release` gives its memory up even if it is in use."""
        with self.changed:
            value, n_bytes = self.entries.pop(key, (None, 0))  # another thread may have been first
            self.nbytes -= n_bytes
        if hasattr(value, "release"):
            value.release()


TEXTS = Cache(min(TEXTS_BYTES, TOTAL_BYTES // 4))
MODELS = Cache(TOTAL_BYTES - TEXTS.max_bytes)


class CachedFunction(Generic[P, Value]):
    """A function whose values are cached; call it like the function itself.

    Errors are not cached. Values are shared between visitors: treat them as read-only.
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
        """The value for these arguments of `key` if it is cached, else None; counts as a use."""
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
        """How many values of this function are cached."""
        return len(self._sizes())

    def clear(self) -> None:
        """Evict every value of this function."""
        for key in self._sizes():
            self._cache.evict(key)

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Inside, every call computes its value and caches nothing (for tests)."""
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
    """Cache what a function returns.

    key: takes the arguments of a call and returns what identifies the value; leave out arguments
    that don't change it, such as a callback for progress. size: bytes of a value, `size_of` by
    default. A value that is larger than the cache's limit is returned and not cached.
    """
    return lambda function: CachedFunction(function, key, size or size_of, cache, evict_last)


def nbytes_by_name() -> dict[str, int]:
    """Bytes of the cached values of each function, by module and name."""
    sizes: Counter[str] = Counter()
    for cache in (TEXTS, MODELS):
        with cache.changed:
            for (function, _), (_, n_bytes) in cache.entries.items():
                sizes[f"{function.__module__}.{function.__qualname__}"] += n_bytes
    return dict(sizes)


def size_of(value: object) -> int:
    """Bytes of a value, with everything in it: tensors, arrays, layers, tables and containers.

    Memory that is used twice counts once. A view counts all the memory that it keeps in use.
    """
    return _size_of(value, set())


def _size_of(value: object, counted: set[int]) -> int:
    if id(value) in counted or value is None:
        return 0
    counted.add(id(value))
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        memory = storage.data_ptr()  # the same for all views of it
        new = memory not in counted
        counted.add(memory)
        return int(storage.nbytes()) if new else 0
    base = getattr(value, "base", None)  # what an array is a view of
    if isinstance(base, np.ndarray | bytes) or hasattr(base, "untyped_storage"):
        return _size_of(base, counted)
    if hasattr(value, "memory_usage"):  # a data frame: the strings of its columns too
        return int(value.memory_usage(deep=True).sum())
    # a module; rounded weights are in its buffers
    if hasattr(value, "parameters") and hasattr(value, "buffers"):
        stored = (*value.parameters(), *value.buffers())
        return sum(_size_of(tensor, counted) for tensor in stored)
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
    return sys.getsizeof(value) + sum(_size_of(part, counted) for part in parts)
