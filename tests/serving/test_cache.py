"""What is kept, within the bound of a function and the bound of all together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

from serving import cache, limits
from serving.cache import Kept, Total, kept, size_of


def keeper(
    max_bytes: int, total: Total, *, last_to_go: bool = False
) -> tuple[Kept[[str, int], bytes], list[str]]:
    """A kept function that makes values of a size, and the names of those it made."""
    made: list[str] = []

    @kept(max_bytes, key=lambda name, size: name, size=len, last_to_go=last_to_go, total=total)
    def value(name: str, size: int) -> bytes:
        made.append(name)
        return b"x" * size

    return value, made


def test_the_least_recently_used_goes_first():
    value, made = keeper(10, Total(100))
    for name in "abac":
        value(name, 4)
    assert made == ["a", "b", "c"]
    assert [value.is_kept(name, 4) for name in "abc"] == [True, False, True]
    assert value.nbytes == 8
    value.clear()
    assert value.nbytes == 0
    assert not value.is_kept("a", 4)


def test_a_call_looks_for_its_key_once():
    asked: list[int] = []

    def key(n: int) -> int:
        asked.append(n)
        return n

    @kept(100, key=key, size=lambda _: 1, total=Total(100))
    def double(n: int) -> int:
        return 2 * n

    assert [double(4), double(4), double(7)] == [8, 8, 14]
    assert asked == [4, 4, 7]


def test_a_look_counts_as_a_use_and_computes_nothing():
    value, made = keeper(10, Total(100))
    assert value.peek("a", 4) is None
    assert not value.is_kept("a", 4)
    assert made == []
    value("a", 4)
    value("b", 4)
    assert value.peek("a", 4) == b"xxxx"
    value("c", 4)
    assert [value.is_kept(name, 4) for name in "abc"] == [True, False, True]


def test_a_value_over_the_bound_is_returned_but_not_kept():
    value, made = keeper(10, Total(100))
    value("small", 4)
    assert value("big", 11) == b"x" * 11
    assert value("big", 11) == b"x" * 11
    assert made == ["small", "big", "big"]
    assert value.is_kept("small", 4)
    assert value.nbytes == 4


def test_a_value_over_the_total_is_not_kept_and_pushes_nothing_out():
    total = Total(20)
    value, _ = keeper(100, total)
    other, _ = keeper(100, total)
    other("a", 15)
    assert value("big", 21) == b"x" * 21
    assert not value.is_kept("big", 21)
    assert other.is_kept("a", 15)


def test_the_total_holds_over_several_caches_and_the_longest_unused_goes_first():
    total = Total(20)
    first, _ = keeper(15, total)
    second, _ = keeper(15, total)
    third, _ = keeper(14, total)
    first("a", 6)
    second("b", 6)
    first("c", 6)
    first("a", 6)  # used again: b is now the longest unused one, then c
    third("d", 7)
    assert total.nbytes == 19
    assert [first.is_kept("a", 6), second.is_kept("b", 6), first.is_kept("c", 6)] == [
        True,
        False,
        True,
    ]
    third("e", 8)  # over the total, and over its own bound together with d
    assert [first.is_kept("a", 6), first.is_kept("c", 6), third.is_kept("d", 7)] == [
        True,
        True,
        False,
    ]
    assert total.nbytes == 20


def test_small_caches_have_a_bound_together_and_leave_the_large_ones_alone():
    total = Total(1000, texts_bytes=20)

    def of(max_bytes: int) -> Kept[[int], str]:
        return kept(max_bytes, key=lambda n: n, size=len, total=total)(lambda n: "x" * n)

    small, smaller, large = of(20), of(15), of(100)
    large(60)
    small(9)
    smaller(8)
    assert total.nbytes == 77
    smaller(4)  # 21 of texts: the longest unused of the small ones goes
    assert (small.is_kept(9), smaller.is_kept(8), smaller.is_kept(4)) == (False, True, True)
    small(20)  # alone it fills the bound
    assert not smaller.is_kept(8)
    assert not smaller.is_kept(4)
    assert large.is_kept(60)
    assert total.nbytes == 80


def test_models_go_last_and_leave_a_share_to_the_others():
    total = Total(40)
    models, _ = keeper(1000, total, last_to_go=True)
    values, _ = keeper(1000, total)
    models("old", 15)
    models("new", 15)
    values("a", 10)
    values("b", 10)  # in the place of a, although both models are longer unused
    assert models.is_kept("old", 15)
    assert models.is_kept("new", 15)
    assert not values.is_kept("a", 10)
    values("c", 20)  # only now does a model go, the longest unused one
    assert not models.is_kept("old", 15)
    assert models.is_kept("new", 15)
    assert models("too big", 31) == b"x" * 31  # over three quarters of the total
    assert not models.is_kept("too big", 31)


def test_eight_threads_make_a_value_once_and_others_do_not_wait_for_it():
    total = Total(100)
    started, inside, go_on = threading.Barrier(8), threading.Event(), threading.Event()
    made: list[str] = []

    @kept(10, key=lambda name: name, size=len, total=total)
    def value(name: str) -> bytes:
        made.append(name)
        if name == "slow":
            inside.set()
            assert go_on.wait(10)
        return b"x"

    def ask(_: int) -> bytes:
        started.wait(10)
        return value("slow")

    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(ask, range(8))
        assert inside.wait(10)
        assert value("quick") == b"x"  # while the other is being made
        assert not value.is_kept("slow")
        go_on.set()
        assert list(answers) == [b"x"] * 8
    assert sorted(made) == ["quick", "slow"]


def test_threads_in_several_caches_keep_to_the_total():
    total = Total(50)
    functions = [keeper(40, total)[0] for _ in range(3)]
    started = threading.Barrier(6)
    most: list[int] = []

    def ask(worker: int) -> None:
        started.wait(10)
        for number in range(60):
            value = functions[(worker + number) % 3]
            size = 1 + (worker * 7 + number * 5) % 13
            assert len(value(f"{worker} {number % 20}", size)) in range(1, 14)
            most.append(total.nbytes)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(6)))
    assert 0 < max(most) <= 50
    assert total.nbytes == sum(value.nbytes for value in functions)


def test_an_error_is_not_kept_and_those_who_waited_try_themselves():
    total = Total(100)
    started = threading.Barrier(2)
    made: list[int] = []

    @kept(10, key=lambda: "", size=len, total=total)
    def value() -> bytes:
        made.append(1)
        if len(made) == 1:
            raise ZeroDivisionError
        return b"x"

    def ask(_: int) -> bytes | type[Exception]:
        started.wait(10)
        try:
            return value()
        except ZeroDivisionError as error:
            return type(error)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ask, range(2)), key=str) == sorted(
            [ZeroDivisionError, b"x"], key=str
        )
    assert len(made) == 2
    assert value() == b"x"
    assert len(made) == 2


def test_what_is_put_aside_comes_back():
    value, made = keeper(10, Total(100))
    value("a", 4)
    with value.nothing_kept():
        assert not value.is_kept("a", 4)
        value("a", 4)
        value("a", 4)
    assert made == ["a", "a", "a"]
    assert value.is_kept("a", 4)
    value("a", 4)
    assert made == ["a", "a", "a"]


def test_a_kept_function_keeps_its_name_and_words():
    @kept(10, key=lambda number: number, total=Total(10))
    def half(number: int) -> float:
        """Half of it."""
        return number / 2

    assert (half.__name__, half.__doc__) == ("half", "Half of it.")
    assert half(3) == 1.5


def test_the_functions_of_the_site_share_one_total():
    before = cache.nbytes()

    @kept(10_000, key=lambda: "")
    def value() -> np.ndarray:
        return np.zeros(1000, np.float32)

    value()
    assert cache.nbytes() == before + 4000
    value.clear()
    assert cache.nbytes() == before
    assert cache.MEMORY_SHARE * cache.memory_bytes() >= cache.TOTAL_BYTES
    bounds = [number for name, number in vars(limits).items() if name.endswith("_CACHE_BYTES")]
    assert bounds
    assert all(isinstance(number, int) and number > 0 for number in bounds)


@dataclass
class Pair:
    """Two parts of a value."""

    left: object
    right: object = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: torch.zeros(3, 5), 60),
        (lambda: torch.zeros(30, 5)[:2], 600),  # the rows that are not seen are in memory too
        (lambda: np.zeros((3, 7), np.float64), 168),
        (lambda: np.zeros((30, 7), np.float64)[:3], 1680),
        (lambda: torch.zeros(30, 5)[:, :2].numpy(), 600),
        (lambda: torch.nn.Linear(3, 5), 80),
        (lambda: torch.nn.BatchNorm1d(5), 40 + 48),  # 48 of them in buffers
        (lambda: None, 0),
    ],
)
def test_the_size_of_tensors_arrays_and_layers(value: Callable[[], object], expected: int):
    assert size_of(value()) == expected
    whole = size_of(Pair({"one": [value()]}))
    assert expected <= whole < expected + 1000


def test_what_is_in_a_value_twice_counts_once():
    tensor = torch.zeros(1000)
    once = size_of(Pair(tensor))
    assert size_of(Pair(tensor, tensor)) == once
    assert size_of(Pair(tensor, tensor[10:])) == once
    assert size_of(Pair(tensor, torch.zeros(1000))) == once + 4000


def test_a_frame_counts_its_strings():
    short, long = (pd.DataFrame({"word": [letter * 1000 for letter in "ab"[:n]]}) for n in (1, 2))
    assert size_of(short) > 1000
    assert size_of(long) > size_of(short) + 1000
