"""What is computed once and kept for all visitors, within bounds in bytes.

    @kept(RUN_CACHE_BYTES, key=lambda name, text: (*models.key(name), text))
    def run(name: str, text: str) -> Run: ...

Every kept function has a cache of its own with a bound of its own, and all caches together have one
total bound, a share of the memory of this machine or container (`TOTAL_BYTES`). Where a new value
takes the total over it, the least recently used values of any cache go first; those of a cache that
is `last_to_go` (the models: seconds to load, and every page needs them) only when nothing else is
left. So that such a cache cannot crowd out the others for good, it gets at most
`LAST_TO_GO_SHARE` of the total.

What visitors' texts leave behind, runs and what pages make of them, has one more bound for all
of it (`TEXTS_BYTES`; caches that are larger themselves are not meant). So a site that has been
visited for an hour is no larger than after some minutes, whatever memory the machine has.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from cachetools import LRUCache, cached

from serving.limits import TEXTS_BYTES
from serving.memory import memory_bytes

P = ParamSpec("P")
Value = TypeVar("Value")

# The rest of the memory is for the process itself (PyTorch, transformers and Streamlit take about
# 1 GB), for what a forward pass needs while it runs, and for everything else on the machine.
MEMORY_SHARE = 0.6
LAST_TO_GO_SHARE = 0.75
TOTAL_BYTES = int(MEMORY_SHARE * memory_bytes())


class Total:
    """The caches that share one bound, and the one lock and condition of all of them."""

    def __init__(self, max_bytes: int, texts_bytes: int = 0) -> None:
        self.max_bytes, self.texts_bytes = max_bytes, texts_bytes
        self.changed = threading.Condition()
        self._caches: weakref.WeakSet[_Cache] = weakref.WeakSet()
        self._clock = itertools.count()

    def add(self, cache: _Cache) -> None:
        """Let a cache count towards the bound."""
        with self.changed:
            self._caches.add(cache)

    def now(self) -> int:
        """A number that grows with every use of a value."""
        return next(self._clock)

    @property
    def nbytes(self) -> int:
        """Bytes of all values that are kept now."""
        with self.changed:
            return sum(int(cache.currsize) for cache in self._caches)

    def by_name(self) -> dict[str, int]:
        """Bytes of the values of each kept function, by its name with its module's before it."""
        sizes: dict[str, int] = {}
        with self.changed:
            for cache in self._caches:
                sizes[cache.name] = sizes.get(cache.name, 0) + int(cache.currsize)
        return sizes

    def make_room(self, newest: int) -> None:
        """Forget values until both bounds hold: the longest unused first, models last.

        The value that was used at `newest`, for which room is made, stays.
        """
        caches = list(self._caches)
        of_texts = [cache for cache in caches if cache.of_texts]
        for bounded, most in ((of_texts, self.texts_bytes), (caches, self.max_bytes)):
            while sum(cache.currsize for cache in bounded) > most:
                older_caches = [cache for cache in bounded if cache.oldest < newest]
                min(older_caches, key=lambda cache: (cache.last_to_go, cache.oldest)).popitem()


class _Cache(LRUCache[Hashable, Any]):
    """The values of one function, and when each was last used by the clock of all caches."""

    def __init__(
        self,
        max_bytes: int,
        size: Callable[[Any], int],
        total: Total,
        *,
        last_to_go: bool,
        of_texts: bool = False,
        name: str = "",
    ) -> None:
        super().__init__(max_bytes, getsizeof=size)
        self.total, self.last_to_go, self.name = total, last_to_go, name
        self.of_texts = of_texts and max_bytes <= total.texts_bytes
        self.last_used: dict[Hashable, int] = {}  # in the order of use
        total.add(self)

    @property
    def oldest(self) -> float:
        """When the least recently used value was used; infinity where there is none."""
        return next(iter(self.last_used.values()), math.inf)

    def __getitem__(self, key: Hashable) -> Any:
        value = super().__getitem__(key)
        self._used(key)
        return value

    def __setitem__(self, key: Hashable, value: Any) -> None:
        super().__setitem__(key, value)
        self._used(key)
        self.total.make_room(self.last_used[key])

    def __delitem__(self, key: Hashable) -> None:
        _let_go(super().__getitem__(key))
        super().__delitem__(key)
        del self.last_used[key]

    def clear(self) -> None:
        for value in self.values():
            _let_go(value)
        super().clear()
        self.last_used.clear()

    def _used(self, key: Hashable) -> None:
        self.last_used.pop(key, None)
        self.last_used[key] = self.total.now()

    __hash__ = object.__hash__  # a cache is itself, whatever it holds
    __eq__ = object.__eq__


def _let_go(value: Any) -> None:
    """Tell a value that it is kept no longer: whoever still has it shall not keep its memory."""
    if hasattr(value, "let_go"):
        value.let_go()


class Kept(Generic[P, Value]):
    """A function whose values are kept; call it like the function itself.

    Several threads that ask for the same missing value wait for one of them to make it. An error is
    not kept, and neither is a value that alone exceeds a bound: it is returned all the same.
    Values are shared: treat them as read-only. One with a method `let_go` is told when it is
    forgotten.
    """

    def __init__(
        self,
        make: Callable[P, Value],
        cache: _Cache,
        key: Callable[..., Hashable],
    ) -> None:
        self.__doc__, self.__name__ = make.__doc__, make.__name__
        self.__module__, self.__qualname__ = make.__module__, make.__qualname__
        self.__wrapped__ = make
        self._cache, self._key, self._changed = cache, key, cache.total.changed
        self._call = self._kept_in(cache)

    def _kept_in(self, cache: _Cache) -> Callable[[Hashable, Callable[[], Value]], Value]:
        """The value of a key in this cache, made by the given function if it is not there."""

        @cached(cache, key=lambda key, make: key, condition=self._changed)
        def value(key: Hashable, make: Callable[[], Value]) -> Value:
            return make()

        return value

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Value:
        """The value for these arguments, made now if it is not kept."""
        key = self._key(*args, **kwargs)
        return self._call(key, lambda: self.__wrapped__(*args, **kwargs))

    def is_kept(self, *args: Any, **kwargs: Any) -> bool:
        """Whether the value for these arguments of `key` is there; nothing is computed."""
        key = self._key(*args, **kwargs)
        with self._changed:
            return key in self._cache

    def peek(self, *args: Any, **kwargs: Any) -> Value | None:
        """The value for these arguments of `key` if it is there, else None; nothing is computed."""
        key = self._key(*args, **kwargs)
        with self._changed:
            if key not in self._cache:
                return None
            value: Value = self._cache[key]  # which counts as a use of it
            return value

    @property
    def nbytes(self) -> int:
        """Bytes of the values that are kept now."""
        with self._changed:
            return int(self._cache.currsize)

    @property
    def n_kept(self) -> int:
        """How many values are kept now."""
        with self._changed:
            return len(self._cache)

    def clear(self) -> None:
        """Forget every value."""
        with self._changed:
            self._cache.clear()

    @contextmanager
    def nothing_kept(self) -> Iterator[None]:
        """Inside, every call computes anew; afterwards the earlier values are back (for tests)."""
        nothing = _Cache(0, lambda _: 1, self._cache.total, last_to_go=False)
        before = self._cache, self._call
        self._cache, self._call = nothing, self._kept_in(nothing)
        try:
            yield
        finally:
            self._cache, self._call = before


_total = Total(TOTAL_BYTES, TEXTS_BYTES)


def kept(
    max_bytes: int,
    *,
    key: Callable[..., Hashable],
    size: Callable[[Any], int] | None = None,
    last_to_go: bool = False,
    of_texts: bool = True,
    total: Total = _total,
) -> Callable[[Callable[P, Value]], Kept[P, Value]]:
    """Keep what a function returns: at most `max_bytes` of it, and no more than the total allows.

    key: takes the arguments of a call and returns what stands for them; arguments that do not
    change the value, such as a function to report progress to, are left out of it. size: bytes of a
    value, by default what `size_of` counts. of_texts: whether it comes and goes with
    what visitors type, so that `TEXTS_BYTES` hold for it too.
    """
    bound = bound_of(max_bytes, last_to_go=last_to_go, total=total)

    def decorate(make: Callable[P, Value]) -> Kept[P, Value]:
        name = f"{make.__module__}.{make.__qualname__}"
        cache = _Cache(
            bound, size or size_of, total, last_to_go=last_to_go, of_texts=of_texts, name=name
        )
        return Kept(make, cache, key)

    return decorate


def bound_of(max_bytes: int, *, last_to_go: bool = False, total: Total = _total) -> int:
    """Bytes that a kept function may take: `max_bytes`, or what the total leaves of them."""
    return min(max_bytes, int(total.max_bytes * (LAST_TO_GO_SHARE if last_to_go else 1)))


def nbytes() -> int:
    """Bytes of all values that are kept now, by all functions."""
    return _total.nbytes


def nbytes_by_name() -> dict[str, int]:
    """The same for each function, by the function's name with its module's before it."""
    return _total.by_name()


def size_of(value: object) -> int:
    """Bytes of a value: tensors and arrays by their numbers, containers by what is in them.

    What is in a value twice counts once; a view, be it a tensor or an array, counts the whole
    memory that it keeps from being let go.
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
