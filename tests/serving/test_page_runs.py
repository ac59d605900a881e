"""A few pages run at once; the others wait for room, but not for ever."""

import threading
from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from pretrained.load import Pretrained
from serving import metrics, models, page_runs, turns
from serving.backend import choice

PATIENCE = 60  # seconds, of a test that would otherwise hang


@pytest.fixture(autouse=True)
def _two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_runs, "_room", page_runs.Room(2))
    monkeypatch.setattr(page_runs, "LONGEST_WAIT_SECONDS", PATIENCE)
    monkeypatch.setattr(page_runs, "SILENT_WAIT_SECONDS", 0.05)


def _third(ran: threading.Event, told: threading.Event | None = None) -> threading.Thread:
    """A thread that runs one more page; it sets `told` when its visitor is told to wait."""

    def page() -> None:
        with page_runs.room((told or threading.Event()).set):
            ran.set()

    thread = threading.Thread(target=page)
    thread.start()
    return thread


def test_a_page_runs_when_another_has_ended():
    ran = threading.Event()
    with page_runs.room():
        with page_runs.room():
            third = _third(ran)
            assert not ran.wait(0.2)
        assert ran.wait(PATIENCE)
        third.join()


def test_whoever_waits_is_told_and_nobody_else():
    ran, told, told_at_once = threading.Event(), threading.Event(), threading.Event()
    with page_runs.room():
        with page_runs.room(told_at_once.set):
            third = _third(ran, told)
            assert told.wait(PATIENCE)
            assert not ran.is_set()
        third.join(PATIENCE)
    assert ran.is_set()
    assert not told_at_once.is_set()


def test_every_wait_is_counted():
    name, labels = "attention_lab_waiting_seconds_count", {"queue": "pages"}
    with page_runs.room():
        before = metrics.REGISTRY.get_sample_value(name, labels)
        with page_runs.room():
            assert before is not None
            assert metrics.REGISTRY.get_sample_value(name, labels) == before + 1


def test_a_page_that_fails_leaves_its_room():
    for _ in range(3):
        with pytest.raises(KeyError), page_runs.room():
            raise KeyError
    with page_runs.room(), page_runs.room():
        pass


def test_whoever_has_waited_long_goes_on_and_leaves_no_room_of_others(
    monkeypatch: pytest.MonkeyPatch,
):
    with page_runs.room(), page_runs.room():
        monkeypatch.setattr(page_runs, "LONGEST_WAIT_SECONDS", 0.06)
        with page_runs.room():
            pass
        monkeypatch.setattr(page_runs, "LONGEST_WAIT_SECONDS", PATIENCE)
        ran = threading.Event()
        third = _third(ran)
        assert not ran.wait(0.2)
    assert ran.wait(PATIENCE)
    third.join()


def _is_free() -> bool:
    """Whether one more page could run now."""
    is_free = page_runs._room.enter(0)
    if is_free:
        page_runs._room.leave()
    return is_free


def test_a_visitor_who_goes_on_while_he_waits_leaves_no_place_behind():
    def goes_on() -> None:
        raise RerunException(RerunData())

    with page_runs.room(), page_runs.room():
        place = page_runs.room(goes_on)
        with pytest.raises(RerunException):
            place.__enter__()
    with page_runs.room():
        assert _is_free()
    assert _is_free()


def test_a_page_that_waits_makes_room_for_one_and_goes_on_at_once():
    with page_runs.room(), page_runs.room():
        assert not _is_free()
        with page_runs.outside():
            assert _is_free()
            with page_runs.outside(), page_runs.room():  # makes no more room, and takes it
                assert not _is_free()
        assert not _is_free()
    with page_runs.outside(), page_runs.room(), page_runs.room():  # first without a page
        assert not _is_free()


def test_who_comes_back_where_there_is_no_room_counts_all_the_same():
    with page_runs.room(), page_runs.room():
        with page_runs.outside():
            assert page_runs._room.enter(0)
        page_runs._room.leave()  # two are still inside
        assert not _is_free()


@pytest.mark.usefixtures("bundled_weights")
def test_a_page_makes_room_while_it_has_its_turn_loads_a_model_or_asks_a_server(
    monkeypatch: pytest.MonkeyPatch,
):
    was_free = list[bool]()
    model = models.get("gpt2-novels")

    def loads(_: str) -> Pretrained:
        was_free.append(_is_free())
        return model

    def answers(_name: str, _ids: tuple[int, ...]) -> None:
        was_free.append(_is_free())

    monkeypatch.setattr("pretrained.load_by_name", loads)
    monkeypatch.setattr(choice, "_server", lambda: SimpleNamespace(record=answers))
    with page_runs.room(), page_runs.room(), models.loaded.nothing_kept():
        models.loaded(models.key("gpt2-novels"))
        choice.record(model, (1, 2))
        with turns.turn():
            was_free.append(_is_free())
        assert was_free == [True, True, True]
        assert not _is_free()
