"""Test the log: JSON lines contain no visitor data, and no text can forge or flood records."""

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.logger import DEFAULT_LOG_MESSAGE, get_logger
from streamlit.testing.v1 import AppTest
from uvicorn.logging import AccessFormatter, DefaultFormatter

from serving import log, metrics
from serving.jobs import BackgroundJob, JobQueue
from tests.helpers.apptest import FRAME, open_page
from tests.helpers.hostile_texts import FORGED
from tests.helpers.jobs import finish
from web.metrics_endpoint import RequestMetrics

HOSTILE = 'zyxw"}\n{"level": "zyxw"} <zyxw> \x1b[31m%s {zyxw}'
ADDRESS = "203.0.113.9"
KNOWN = {
    "time", "level", "event", "page", "milliseconds", "kind", "raised", "ended", "queue", "state",
    "logger", "place",
}  # fmt: skip


@pytest.fixture
def _restore_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore logging afterwards, and first undo what another test's server may have started."""
    logging.captureWarnings(False)
    for place, name in (
        (logging.Logger, "callHandlers"),
        (logging.Handler, "format"),
        (sys, "excepthook"),
        (sys, "unraisablehook"),
        (threading, "excepthook"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))
    yield
    logging.captureWarnings(False)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch, _restore_logging: None) -> io.StringIO:
    """Return the stream that receives the JSON lines from now on."""
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")
    monkeypatch.setenv(log.VARIABLE, "json")
    monkeypatch.setattr(log, "_stream", None)
    output = io.StringIO()
    log.start(output)
    return output


def lines(stream: io.StringIO, **about: str) -> list[dict]:
    """Return the parsed lines that have these fields.

    Other events in the process, such as a library's warnings, have separate lines.
    """
    message = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in message if about.items() <= line.items()]


def fail(*_: object) -> Response:
    raise ZeroDivisionError(HOSTILE)


class FailingWork(BackgroundJob):
    def work(self) -> None:
        fail()


def test_log_contains_no_visitor_data(stream: io.StringIO):
    # a page with the text in its link
    tokens = "pages/learn/tokens/page.py"
    open_page(AppTest.from_file(FRAME, default_timeout=60), tokens, tokens_text=HOSTILE)
    # addresses, errors of pages, requests and jobs
    with pytest.raises(ZeroDivisionError), metrics.track_page_run(HOSTILE):
        fail()
    with pytest.raises(ZeroDivisionError) as failure:
        fail()
    metrics.count_script_error(failure.value)
    site = RequestMetrics(Starlette(routes=[Route("/fails", fail)]))
    visitor = TestClient(site, raise_server_exceptions=False, client=(ADDRESS, 4321))
    visitor.get("/fails", params={"text": HOSTILE})
    job = FailingWork()
    JobQueue().put(job)
    finish(job)
    # library output: Streamlit about a page, uvicorn about a visitor, warnings, threads that end
    get_logger("streamlit.error_util").error("Uncaught %s", HOSTILE, exc_info=failure.value)
    logging.getLogger("uvicorn.error").info('%s - "WebSocket /?text=%s"', ADDRESS, HOSTILE)
    warnings.warn(HOSTILE, stacklevel=1)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()

    output = stream.getvalue()
    assert [part for part in ("zyxw", ADDRESS, "\x1b") if part in output] == []
    events = {line["event"] for line in lines(stream)}
    assert events >= {"page run", "error", "logged", "uncaught error"}
    loggers = {line["logger"] for line in lines(stream, event="logged")}
    assert loggers >= {"streamlit.error_util", "serving.jobs", "py.warnings"}
    assert {key for line in lines(stream) for key in line} <= KNOWN
    errors = lines(stream, event="error")
    assert {line["ended"] for line in errors} == {"page", "request", "job"}
    # enough to find the error: its class and its line of code
    assert {line["kind"] for line in errors} == {"ZeroDivisionError"}
    assert all(line["raised"].startswith("test_log.py:") for line in errors)


FORMATTERS = {
    "Streamlit's": logging.Formatter(DEFAULT_LOG_MESSAGE),
    "uvicorn's": DefaultFormatter("%(levelprefix)s %(message)s", use_colors=False),
}
TEXTS = {name: FORGED[name] for name in ("a line feed", "an escape sequence", "too long")} | {
    "a surrogate": "x\udc80"
}


def raise_it(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError as error:
        raise KeyError(text) from error


def log_text(logger: logging.Logger, carrier: str, text: str) -> None:
    """Log a text as a message, as its argument, or as an error's message."""
    if carrier == "a message":
        logger.error(text.replace("%", "%%"))
    elif carrier == "an argument":
        logger.error("The fragment with id %s is gone, says %r", text, text)
    else:
        try:
            raise_it(text)
        except KeyError:
            logger.exception("an error of %s", text)


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("carrier", ["a message", "an argument", "an error"])
@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.usefixtures("_restore_logging")
def test_no_text_can_forge_or_flood_the_log(
    formatter: str, carrier: str, what: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(log.VARIABLE, raising=False)
    log.start()
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(FORMATTERS[formatter])
    logger = logging.Logger("tried")
    logger.addHandler(handler)
    log_text(logger, carrier, TEXTS[what])
    first, *rest = output.getvalue().removesuffix("\n").split("\n")
    assert all(line.startswith("    ") for line in rest)
    assert all(line.isprintable() for line in (first, *rest))
    assert len(output.getvalue()) <= log.MAX_RECORD + 100
    if carrier == "an error":  # enough to find it
        assert "raise_it" in output.getvalue()
        assert "KeyError" in output.getvalue()
    else:
        assert rest == []


@pytest.mark.usefixtures("_restore_logging")
def test_access_log_line_is_safe(monkeypatch: pytest.MonkeyPatch):
    """Uvicorn's formatter unpacks a record's arguments."""
    monkeypatch.delenv(log.VARIABLE, raising=False)
    log.start()
    record = logging.LogRecord(
        "uvicorn.access", logging.INFO, "a.py", 1, '%s - "%s %s HTTP/%s" %d',
        (ADDRESS, "GET\n", f"/\x1b[2J?{'x' * 100_000}\nforged", "1.1", 200), None,
    )  # fmt: skip
    handler = logging.StreamHandler()
    handler.setFormatter(AccessFormatter('%(client_addr)s - "%(request_line)s"', use_colors=False))
    text = handler.format(record)
    assert text.startswith(ADDRESS)
    assert all(line.isprintable() for line in text.split("\n"))
    assert all(line.startswith("    ") for line in text.split("\n")[1:])
    assert len(text) <= log.MAX_RECORD + 100
