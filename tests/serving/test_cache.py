"""The cache bounded in bytes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving.cache import BoundedCache


def test_the_least_recently_used_goes_first():
    cache: BoundedCache[bytes] = BoundedCache(10, len)
    for key, size in (("a", 4), ("b", 4)):
        cache.get(key, lambda size=size: b"x" * size)
    cache.get("a", lambda: b"never made")
    cache.get("c", lambda: b"x" * 4)
    assert [key in cache for key in "abc"] == [True, False, True]
    assert cache.nbytes == 8


def test_a_value_over_the_bound_is_returned_but_not_kept():
    cache: BoundedCache[bytes] = BoundedCache(10, len)
    assert cache.get("big", lambda: b"x" * 11) == b"x" * 11
    assert "big" not in cache
    assert cache.nbytes == 0


def test_eight_threads_make_a_value_once():
    cache: BoundedCache[bytes] = BoundedCache(10, len)
    started = threading.Barrier(8)
    made = []

    def make() -> bytes:
        made.append(1)
        return b"x"

    def ask(_: int) -> bytes:
        started.wait(10)
        return cache.get("key", make)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [b"x"] * 8
    assert made == [1]


def test_an_error_is_not_kept():
    cache: BoundedCache[bytes] = BoundedCache(10, len)
    with pytest.raises(ZeroDivisionError):
        cache.get("key", lambda: bytes(1 // 0))
    assert cache._making == {}
    assert cache.get("key", lambda: b"x") == b"x"
