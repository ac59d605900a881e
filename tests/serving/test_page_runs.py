"""A few pages run at once; the others wait for room, but not for ever."""

import threading

import pytest

from serving import metrics, page_runs

PATIENCE = 60  # seconds, of a test that would otherwise hang


@pytest.fixture(autouse=True)
def _two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_runs, "_room", threading.BoundedSemaphore(2))
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
