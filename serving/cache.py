"""A cache bounded in bytes, shared by all visitors, that makes each value once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Keeps the most recently used values while their sizes add up to at most `max_bytes`.

    Several threads that ask for the same missing key wait for one of them to make it. A value that
    alone exceeds the bound is returned but not kept. Values are shared: treat them as read-only.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._values: LRUCache[Hashable, Value] = LRUCache(max_bytes, getsizeof=size_of)
        self._size_of = size_of
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, from `make()` if it is not there. Errors of `make` are not kept."""
        with self._lock:
            if key in self._values:
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                with self._lock:
                    if self._size_of(value) <= self._values.maxsize:
                        self._values[key] = value
            finally:
                with self._lock:
                    # whoever waited for this lock is still served; only its own entry goes
                    if self._making.get(key) is making:
                        del self._making[key]
            return value

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        with self._lock:
            return int(self._values.currsize)

    def clear(self) -> None:
        """Forget every value."""
        with self._lock:
            self._values.clear()
