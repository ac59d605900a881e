"""The JSON log: what stands in it, and that no visitor does."""

import io
import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.logger import get_logger
from streamlit.testing.v1 import AppTest

from serving import log, metrics
from serving.jobs import JobQueue, Work
from serving.status import Watched
from tests.helpers.apptest import FRAME, open_page
from tests.helpers.jobs import finish

HOSTILE = 'zyxw"}\n{"level": "zyxw"} <zyxw> \x1b[31m%s {zyxw}'
ADDRESS = "203.0.113.9"
KNOWN = {
    "time", "level", "event", "page", "milliseconds", "kind", "raised", "ended", "queue", "state",
    "logger", "place",
}  # fmt: skip


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is written from now on; afterwards logging is as it was."""
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    monkeypatch.setenv(log.VARIABLE, "json")
    monkeypatch.setattr(log, "_stream", None)
    for place, name in (
        (logging.Logger, "callHandlers"),
        (sys, "excepthook"),
        (sys, "unraisablehook"),
        (threading, "excepthook"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))
    written = io.StringIO()
    log.start(written)
    yield written
    logging.captureWarnings(False)


def lines(stream: io.StringIO, **about: str) -> list[dict]:
    """What every line says; about: only lines with these facts.

    Whatever else happens in the process, such as a warning of a library, has lines of its own.
    """
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in said if about.items() <= line.items()]


def fail(*_: object) -> Response:
    raise ZeroDivisionError(HOSTILE)


class Failing(Work):
    def work(self) -> None:
        fail()


def test_an_event_is_a_line_with_its_page_and_its_time(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(metrics, "_pages", frozenset({"heads"}))
    with metrics.page_run("heads"):
        pass
    (line,) = lines(stream, event="page run")
    assert line.keys() == {"time", "level", "event", "page", "milliseconds"}
    assert (line["level"], line["event"], line["page"]) == ("info", "page run", "heads")
    assert line["time"].endswith("+00:00")
    assert line["milliseconds"] >= 0


def test_nothing_of_a_visitor_is_in_the_log(stream: io.StringIO):
    # a page with it in its link
    tokens = "pages/learn/tokens/page.py"
    open_page(AppTest.from_file(FRAME, default_timeout=60), tokens, tokens_text=HOSTILE)
    # addresses, errors of pages, requests and jobs
    with pytest.raises(ZeroDivisionError), metrics.page_run(HOSTILE):
        fail()
    with pytest.raises(ZeroDivisionError) as failure:
        fail()
    metrics.error_in_script(failure.value)
    site = Watched(Starlette(routes=[Route("/fails", fail)]))
    visitor = TestClient(site, raise_server_exceptions=False, client=(ADDRESS, 4321))
    visitor.get("/fails", params={"text": HOSTILE})
    job = Failing()
    JobQueue().put(job)
    finish(job)
    # what libraries write: Streamlit of a page, uvicorn of a visitor, warnings, threads that end
    get_logger("streamlit.error_util").error("Uncaught %s", HOSTILE, exc_info=failure.value)
    logging.getLogger("uvicorn.error").info('%s - "WebSocket /?text=%s"', ADDRESS, HOSTILE)
    warnings.warn(HOSTILE, stacklevel=1)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()

    written = stream.getvalue()
    assert [part for part in ("zyxw", ADDRESS, "\x1b") if part in written] == []
    events = {line["event"] for line in lines(stream)}
    assert events >= {"page run", "error", "logged", "uncaught error"}
    loggers = {line["logger"] for line in lines(stream, event="logged")}
    assert loggers >= {"streamlit.error_util", "serving.jobs", "py.warnings"}
    assert {key for line in lines(stream) for key in line} <= KNOWN
    errors = lines(stream, event="error")
    assert {line["ended"] for line in errors} == {"page", "request", "job"}
    # enough to find the error: its class, and the line of code
    assert {line["kind"] for line in errors} == {"ZeroDivisionError"}
    assert all(line["raised"].startswith("test_log.py:") for line in errors)


def test_nothing_is_printed_beside_the_lines(
    stream: io.StringIO, capfd: pytest.CaptureFixture[str]
):
    get_logger("streamlit.web").warning("a message")
    logging.getLogger("uvicorn.error").error("another")
    assert capfd.readouterr() == ("", "")
    for logger in ("streamlit.web", "uvicorn.error"):
        assert len(lines(stream, logger=logger)) == 1


class Piecewise(io.StringIO):
    """A stream into which another thread may write between two characters of a line."""

    def write(self, text: str) -> int:
        for character in text:
            super().write(character)
            os.sched_yield()  # other threads may run
        return len(text)


def test_lines_of_many_threads_do_not_mix(monkeypatch: pytest.MonkeyPatch):
    stream = Piecewise()
    monkeypatch.setattr(log, "_stream", stream)
    together = threading.Barrier(5)

    def write(number: int) -> None:
        together.wait()
        for _ in range(20):
            log.event("tried", place="x" * 50, number=number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [line["number"] for line in lines(stream, event="tried")]
    assert {number: numbers.count(number) for number in range(5)} == dict.fromkeys(range(5), 20)


def test_a_log_that_nobody_reads_any_more_stops_nobody(stream: io.StringIO):
    stream.close()
    log.event("tried")


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_written_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str | None
):
    if value is None:
        monkeypatch.delenv(log.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(log.VARIABLE, value)
    as_before = logging.Logger.callHandlers
    log.start()
    log.event("tried")
    assert logging.Logger.callHandlers is as_before
    assert capfd.readouterr() == ("", "")


def test_a_format_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(log.VARIABLE, "xml")
    with pytest.raises(ValueError, match="'xml'"):
        log.start()
