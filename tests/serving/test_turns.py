"""Forward passes run one at a time, in the order in which they were asked for."""

import threading
from collections.abc import Callable, Iterator

import pytest

from serving import turns


def _waiting(count: int) -> Callable[[], bool]:
    return lambda: turns.in_line() == count


def _until(condition: Callable[[], bool]) -> None:
    never = threading.Event()
    for _ in range(1000):
        if condition():
            return
        never.wait(0.01)
    pytest.fail("nobody queued within ten seconds")


def test_whoever_asked_first_is_next():
    had: list[int] = []

    def ask(number: int) -> None:
        with turns.turn():
            had.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    with turns.turn():
        for number, thread in enumerate(threads):
            thread.start()
            _until(_waiting(number + 2))  # so that the order of asking is known
        assert had == []
    for thread in threads:
        thread.join(10)
    assert had == [0, 1, 2, 3, 4]


def test_long_work_lets_others_in_between_two_of_its_steps():
    had: list[str] = []
    visitor = threading.Thread(target=lambda: _one_pass(had))

    def steps() -> Iterator[str]:
        for number in range(3):
            if number == 1:
                visitor.start()
                _until(_waiting(2))
            yield f"step {number}"

    for step in turns.each(steps()):
        if step == "step 1":
            visitor.join(10)  # its turn came before step 2
        had.append(step)
    assert had == ["step 0", "visitor", "step 1", "step 2"]


def _one_pass(had: list[str]) -> None:
    with turns.turn():
        had.append("visitor")


def test_a_turn_that_fails_is_given_back():
    def fail() -> None:
        with turns.turn():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with turns.turn():
        assert turns.in_line() == 1
    assert turns.in_line() == 0
