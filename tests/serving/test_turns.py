"""Forward passes run in their order, pages before jobs, as many at once as have room."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from serving import turns
from tests.helpers.until import until


@pytest.fixture(autouse=True)
def _cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As many cores as a test is given, or three, whatever this machine has."""
    before, cores = torch.get_num_threads(), getattr(request, "param", 3)
    monkeypatch.setattr(turns, "_threads", lambda: cores)
    monkeypatch.setattr(turns, "_seats", lambda: cores)
    yield
    torch.set_num_threads(before)


on_one_core_and_on_several = pytest.mark.parametrize("_cores", [1, 3], indirect=True)


def _until_in_line(count: int) -> None:
    until(lambda: turns.in_line() == count, seconds=10, every=0.01)


@on_one_core_and_on_several
def test_whoever_asked_first_is_next():
    had: list[int] = []

    def ask(number: int) -> None:
        with turns.turn(alone=True):
            had.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    with turns.turn():
        for number, thread in enumerate(threads):
            thread.start()
            _until_in_line(number + 2)  # so that the order of asking is known
        assert had == []
    for thread in threads:
        thread.join(10)
    assert had == [0, 1, 2, 3, 4]


@on_one_core_and_on_several
def test_pages_go_before_jobs_unless_these_have_waited_for_long(monkeypatch: pytest.MonkeyPatch):
    now, had = [0.0], list[str]()
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def ask(name: str) -> None:
        if "job" in name:
            turns.let_pages_go_first()
        with turns.turn(alone=True):
            had.append(name)

    asked = {  # and when
        "first job": 0.0,
        "second job": 0.0,
        "first page": 0.0,
        "second page": turns.PATIENCE_SECONDS - 0.1,
        "third job": turns.PATIENCE_SECONDS - 0.1,
        "third page": turns.PATIENCE_SECONDS,
    }
    threads = [threading.Thread(target=ask, args=(name,)) for name in asked]
    with turns.turn():
        for number, (thread, seconds) in enumerate(zip(threads, asked.values(), strict=True)):
            now[0] = seconds
            thread.start()
            _until_in_line(number + 2)
    for thread in threads:
        thread.join(10)
    assert " ".join(had[:4]) == "first page second page first job second job"
    assert had[4:] == ["third page", "third job"]


@on_one_core_and_on_several
def test_the_first_pass_of_every_address_comes_before_the_second_of_any(
    monkeypatch: pytest.MonkeyPatch,
):
    visitor, had = threading.local(), list[str]()
    monkeypatch.setattr(turns, "_addresses", turns._Addresses())
    turns.know_addresses(lambda: getattr(visitor, "address", None))

    def ask(name: str) -> None:
        visitor.address = None if name == "unknown" else name[0]
        with turns.turn(alone=True):
            had.append(name)

    asked = ["a1", "a2", "a3", "b1", "unknown", "b2", "c1"]
    threads = [threading.Thread(target=ask, args=(name,)) for name in asked]
    with turns.turn():
        for number, thread in enumerate(threads):
            thread.start()
            _until_in_line(number + 2)
    for thread in threads:
        thread.join(10)
    assert had == ["a1", "b1", "unknown", "c1", "a2", "b2", "a3"]


@on_one_core_and_on_several
def test_a_turn_inside_a_turn_is_the_same_turn():
    assert not turns.is_held()
    with turns.turn():
        with turns.turn(alone=True):
            assert turns.in_line() == 1
        assert turns.is_held()
    assert turns.in_line() == 0
    assert not turns.is_held()


@on_one_core_and_on_several
def test_long_work_lets_others_in_between_two_of_its_steps():
    had: list[str] = []
    visitor = threading.Thread(target=lambda: _one_pass(had))

    def steps() -> Iterator[str]:
        for number in range(3):
            if number == 1:
                visitor.start()
                _until_in_line(2)
            yield f"step {number}"

    for step in turns.each(steps()):
        if step == "step 1":
            visitor.join(10)  # its turn came before step 2
        had.append(step)
    assert had == ["step 0", "visitor", "step 1", "step 2"]


def _one_pass(had: list[str]) -> None:
    with turns.turn():
        had.append("visitor")


@on_one_core_and_on_several
def test_a_turn_that_fails_is_given_back():
    def fail() -> None:
        with turns.turn():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with turns.turn():
        assert turns.in_line() == 1
    assert turns.in_line() == 0


class Holders:
    """Threads that each take a turn and hold it until they are let go."""

    def __init__(self) -> None:
        self.threads: dict[str, int] = {}  # of torch, of those that have begun
        self._told = threading.Condition()
        self._let_go: set[str] = set()

    def ask(self, name: str, **options: bool) -> None:
        """Ask for a turn; the call returns once somebody stands in line for it."""
        before = turns.in_line()
        threading.Thread(target=self._hold, args=(name, options), daemon=True).start()
        _until_in_line(before + 1)

    def _hold(self, name: str, options: dict[str, bool]) -> None:
        with turns.turn(**options), self._told:
            self.threads[name] = torch.get_num_threads()
            self._told.notify_all()
            self._told.wait_for(lambda: name in self._let_go)

    def let_go(self, name: str) -> None:
        """Have a turn given back; the call returns once it is."""
        before = turns.in_line()
        with self._told:
            self._let_go.add(name)
            self._told.notify_all()
        _until_in_line(before - 1)

    def run(self, names: str) -> bool:
        """Whether these have begun after a while, and nobody else."""
        with self._told:
            self._told.wait_for(lambda: len(self.threads) >= len(names.split()), 10)
            n_held = len(self.threads) - len(self._let_go)
        return set(self.threads) == set(names.split()) and len(turns._running) == n_held


@pytest.fixture
def holders(_cores: None) -> Iterator[Holders]:
    """Afterwards nobody is left in line."""
    yield Holders()
    assert turns.in_line() == 0
    assert turns.held_seconds() == 0


def test_who_comes_alone_has_all_cores_and_those_who_wait_share_them(holders: Holders):
    holders.ask("first")
    assert holders.run("first")
    for name in ("second", "third", "fourth", "fifth"):
        holders.ask(name)
    assert holders.run("first")
    holders.let_go("first")
    assert holders.run("first second third fourth")
    assert turns.in_line() == 4
    assert turns.held_seconds() > 0
    holders.let_go("third")
    assert holders.run("first second third fourth fifth")
    assert holders.threads == {"first": 3, "second": 1, "third": 1, "fourth": 1, "fifth": 1}
    for name in ("second", "fourth", "fifth"):
        holders.let_go(name)


def test_nobody_runs_beside_what_is_timed(holders: Holders):
    holders.ask("first", one_core=True)
    assert holders.run("first")
    holders.ask("timed", alone=True)
    holders.ask("behind")  # would have room beside the first, but came later
    assert holders.run("first")
    holders.let_go("first")
    assert holders.run("first timed")
    holders.let_go("timed")
    assert holders.run("first timed behind")
    assert holders.threads == {"first": 1, "timed": 3, "behind": 3}
    holders.let_go("behind")


def test_small_work_leaves_the_other_cores_to_others(holders: Holders):
    holders.ask("small", one_core=True)
    assert holders.run("small")
    holders.ask("other")
    assert holders.run("small other")
    assert holders.threads == {"small": 1, "other": 1}
    holders.let_go("other")
    holders.let_go("small")


@pytest.mark.parametrize("_cores", [4], indirect=True)
def test_with_one_seat_each_has_all_threads(holders: Holders, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "_seats", lambda: 1)  # a GPU
    for name in ("first", "second"):
        holders.ask(name)
    assert holders.run("first")
    holders.ask("third")
    holders.let_go("first")
    assert holders.run("first second")
    holders.let_go("second")
    assert holders.run("first second third")
    assert holders.threads == {"first": 4, "second": 4, "third": 4}
    holders.let_go("third")


def test_short_steps_share_a_turn_and_long_ones_have_one_each(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: now[0]))
    in_line: list[int] = []

    def steps(seconds: float) -> Iterator[float]:
        for _ in range(5):
            now[0] += seconds
            in_line.append(turns.in_line())
            yield now[0]

    handed_on = [turns.in_line() for _ in turns.slices(steps(0.04))]
    assert handed_on == [0] * 5, "nothing is handed on within a turn"
    assert in_line == [1] * 5
    counts: list[int] = []
    monkeypatch.setattr(turns.metrics, "waited", lambda *_: counts.append(1))
    for seconds, n_turns in ((0.04, 2), (0.2, 6), (0.0, 1)):  # 0.12 s and 0.08 s, each, all
        counts.clear()
        assert len(list(turns.slices(steps(seconds)))) == 5
        assert len(counts) == n_turns
    assert list(turns.slices([])) == []


def test_steps_of_a_turn_that_fails_are_lost_and_the_turn_is_given_back():
    def steps() -> Iterator[int]:
        yield 1
        raise ValueError("the second step")

    with pytest.raises(ValueError, match="the second step"):
        list(turns.slices(steps()))
    assert turns.in_line() == 0
