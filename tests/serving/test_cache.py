"""Test the cache: values are computed once, evicted in order, and stay within the byte limit."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from serving.cache import Cache, CachedFunction, cached, size_of


def cached_with_log(
    within: Cache, *, evict_last: bool = False
) -> tuple[CachedFunction[[str, int], bytes], list[str]]:
    """Return a cached function, and a list of the names it has computed."""
    computed: list[str] = []

    @cached(key=lambda name, size=0: name, size=len, cache=within, evict_last=evict_last)
    def value(name: str, size: int) -> bytes:
        computed.append(name)
        return b"x" * size

    return value, computed


def test_least_recently_used_value_is_evicted_first():
    value, computed = cached_with_log(Cache(10))
    for name in "abac":
        value(name, 4)
    assert computed == ["a", "b", "c"]
    assert [value.is_cached(name) for name in "abc"] == [True, False, True]
    assert (value.nbytes, value.n_cached) == (8, 2)
    value.clear()
    assert (value.nbytes, value.n_cached) == (0, 0)
    assert not value.is_cached("a")


def test_functions_share_the_limit_but_not_their_values():
    within = Cache(20)
    (first, _), (second, computed) = cached_with_log(within), cached_with_log(within)
    first("a", 6)
    second("a", 7)
    assert (first("a", 0), second("a", 0)) == (b"x" * 6, b"x" * 7)
    second("b", 14)  # evicts both
    assert not first.is_cached("a")
    assert computed == ["a", "b"]
    assert within.nbytes == second.nbytes == 14
    first.clear()
    assert second.is_cached("b")


def test_oversized_value_is_returned_and_evicts_nothing():
    value, computed = cached_with_log(Cache(10))
    value("small", 4)
    assert value("big", 11) == value("big", 11) == b"x" * 11
    assert computed == ["small", "big", "big"]
    assert value.is_cached("small")
    assert value.nbytes == 4


def test_models_are_evicted_last():
    within = Cache(40)
    (trained, _), (values, _) = cached_with_log(within, evict_last=True), cached_with_log(within)
    trained("old", 15)
    trained("new", 15)
    values("a", 10)
    values("b", 10)  # evicts "a", although both models were used less recently
    assert trained.is_cached("old")
    assert not values.is_cached("a")
    values("c", 20)  # now the older model as well
    assert [trained.is_cached(name) for name in ("new", "old")] == [True, False]


def test_evicted_value_is_released():
    released: list[int] = []

    class Held:
        def __init__(self, number: int) -> None:
            self.number = number

        def release(self) -> None:
            released.append(self.number)

    @cached(key=lambda number: number, size=lambda _: 1, cache=Cache(2))
    def value(number: int) -> Held:
        return Held(number)

    for number in range(3):
        value(number)
    assert released == [0]
    value.clear()
    assert released == [0, 1, 2]


def test_value_is_computed_once_without_blocking_others():
    started, inside, go_on = threading.Barrier(8), threading.Event(), threading.Event()
    computed: list[str] = []

    @cached(key=lambda name: name, size=len, cache=Cache(100))
    def value(name: str) -> bytes:
        computed.append(name)
        if name == "slow":
            inside.set()
            assert go_on.wait(10)
        return b"x"

    def request(_: int) -> bytes:
        started.wait(10)
        return value("slow")

    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(request, range(8))
        assert inside.wait(10)
        assert value("quick") == b"x"  # while the other value is computed
        assert not value.is_cached("slow")
        go_on.set()
        assert list(answers) == [b"x"] * 8
    assert sorted(computed) == ["quick", "slow"]


def test_errors_are_not_cached():
    started = threading.Barrier(2)
    computed: list[int] = []

    @cached(key=lambda: "", size=len, cache=Cache(100))
    def value() -> bytes:
        computed.append(1)
        if len(computed) == 1:
            raise ZeroDivisionError
        return b"x"

    def request(_: int) -> bytes | type[Exception]:
        started.wait(10)
        try:
            return value()
        except ZeroDivisionError as error:
            return type(error)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(request, range(2)))
    assert set(answers) == {ZeroDivisionError, b"x"}
    assert value() == b"x"
    assert len(computed) == 2


def test_disabled_function_gets_its_values_back():
    value, computed = cached_with_log(Cache(10))
    value("a", 4)
    with value.disabled():
        assert not value.is_cached("a")
        value("a", 4)
        value("a", 4)
    assert computed == ["a", "a", "a"]
    assert value.is_cached("a")
    value("a", 4)
    assert computed == ["a", "a", "a"]


@dataclass
class Pair:
    """A value with two parts."""

    left: object
    right: object = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: torch.zeros(3, 5), 60),
        (lambda: torch.zeros(30, 5)[:2], 600),  # the hidden rows are also in memory
        (lambda: np.zeros((3, 7), np.float64), 168),
        (lambda: np.zeros((30, 7), np.float64)[:3], 1680),
        (lambda: torch.zeros(30, 5)[:, :2].numpy(), 600),
        (lambda: torch.nn.Linear(3, 5), 80),
        (lambda: torch.nn.BatchNorm1d(5), 40 + 48),  # 48 of them in buffers
        (lambda: None, 0),
    ],
)
def test_size_of_tensors_arrays_and_layers(value: Callable[[], object], expected: int):
    assert size_of(value()) == expected
    whole = size_of(Pair({"one": [value()]}))
    assert expected <= whole < expected + 1000


def test_shared_parts_count_once():
    tensor = torch.zeros(1000)
    once = size_of(Pair(tensor))
    assert size_of(Pair(tensor, tensor)) == once
    assert size_of(Pair(tensor, tensor[10:])) == once
    assert size_of(Pair(tensor, torch.zeros(1000))) == once + 4000
