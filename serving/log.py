"""The log on standard error: JSON lines for log collectors, or plain text.

ATTENTION_LAB_LOG=json writes one line per event, with its time, level and name, and if known the
page, the milliseconds and the class of an error:

    {"time": "2026-01-31T12:00:00.000+00:00", "level": "info", "event": "page run", "page": "heads",
     "milliseconds": 84.1}

JSON lines never contain a visitor's text, the parameters of a URL, or the identity of a visitor.
Because error messages may quote a text, only an error's class and its line of code are logged.
Records from other libraries are logged if they are warnings or errors, with their location in the
code instead of their message.

Without this setting, libraries log as usual, and their records may quote what a visitor sent. Each
record is then limited in length and written without control characters. All its lines after the
first are indented, so that visitors can't forge a record or send control codes to the terminal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from pretrained import settings

VARIABLE = settings.LOG_JSON.name
MAX_MESSAGE, MAX_RECORD = 1_000, 10_000  # characters of a message or line, and of a record
MAX_VALUE = 200  # characters of a value in a JSON line

_INDENT = "    "  # before each line of a record after the first
_stream: TextIO | None = None  # None if JSON lines are off
_write_lock = threading.Lock()
_format_record = logging.Handler.format


def start(stream: TextIO | None = None) -> None:
    """Start logging: JSON lines if ATTENTION_LAB_LOG is json, otherwise sanitized text records.

    stream: the stream for JSON lines, standard error by default.
    Raises ValueError like `EnvironmentVariable.read`.
    """
    global _stream
    if not settings.LOG_JSON.read():
        _start_text()
        return
    _stream = stream or sys.stderr
    # Streamlit and uvicorn add their own handlers at various times during startup. All records pass
    # through this method, so replacing it keeps their messages out of our output.
    logging.Logger.callHandlers = _library_record  # type: ignore[assignment, method-assign]
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda failure: _uncaught(
        failure.exc_type, failure.exc_value, failure.exc_traceback
    )
    sys.unraisablehook = lambda failure: _uncaught(
        failure.exc_type, failure.exc_value, failure.exc_traceback
    )


def is_enabled() -> bool:
    """Whether JSON lines are on."""
    return _stream is not None


def event(name: str, level: str = "info", **facts: str | float) -> None:
    """Write one JSON line if they are on.

    name: a constant that describes the event. level: info, warning or error. facts: numbers, and
    names from the code or the table of contents; never anything that a visitor sent.
    """
    if _stream is None:
        return
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    safe = {key: _safe_value(value) for key, value in facts.items()}
    line = json.dumps({"time": now, "level": level, "event": name, **safe})
    with (
        _write_lock,
        contextlib.suppress(OSError, ValueError),
    ):  # the stream may be closed or broken
        _stream.write(line + "\n")
        _stream.flush()


def _start_text() -> None:
    """Sanitize the records of all handlers; also log warnings and uncaught errors of threads."""
    logging.Handler.format = _safe_record  # type: ignore[assignment, method-assign]
    logging.captureWarnings(True)
    threading.excepthook = lambda failure: _log_uncaught(failure.exc_value)
    sys.unraisablehook = lambda failure: _log_uncaught(failure.exc_value)


def _log_uncaught(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, SystemExit):
        logging.getLogger(__name__).error("uncaught error", exc_info=error)


def _safe_record(handler: logging.Handler, record: logging.LogRecord) -> str:
    """Format a record with the handler's own format, then sanitize it with `safe_record`."""
    return safe_record(_format_record(handler, record), record.getMessage())


def safe_record(text: str, message: str) -> str:
    """Sanitize a record: no control characters, and at most `MAX_RECORD` characters.

    message: the part of the text whose line feeds are escaped. Line feeds in the rest, such as a
    traceback, stay, and the lines after them are indented.
    """
    lines = text.replace(message, _plain(message, MAX_MESSAGE), 1).split("\n")
    head = list(_first_lines(lines))
    tail = list(_first_lines(reversed(lines[len(head) :])))[::-1]
    n_left_out = len(lines) - len(head) - len(tail)
    middle = [f"... {n_left_out} lines left out ..."] if n_left_out else []
    return f"\n{_INDENT}".join(head + middle + tail)


def _first_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines, sanitized, that fit into half of a record."""
    room = MAX_RECORD // 2
    for line in lines:
        plain = _plain(line, MAX_MESSAGE)
        room -= len(plain) + 1 + len(_INDENT)
        if room < 0:
            return
        yield plain


def _plain(text: str, limit: int) -> str:
    """A text without control characters, shortened to about `limit` characters."""
    return shorten(escape(shorten(text, limit)), limit)


def escape(text: str) -> str:
    """A text in which unprintable characters are replaced by escape sequences."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(text: str, limit: int) -> str:
    """A text with its middle left out if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... {len(text) - 2 * half} characters left out ... {text[-half:]}"


def _safe_value(value: str | float) -> str | float:
    return escape(value[:MAX_VALUE]) if isinstance(value, str) else value


def describe_error(error: BaseException) -> dict[str, str]:
    """The details of an error that may be logged: its class, and the line that raised it."""
    facts = {"kind": type(error).__name__}
    if error.__traceback__ is not None:
        facts["raised"] = _code_location(error.__traceback__)
    return facts


def _code_location(traceback: TracebackType) -> str:
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"


def _library_record(logger: logging.Logger, record: logging.LogRecord) -> None:
    """Log a library's record from Python's logging, without its message."""
    if record.levelno < logging.WARNING:
        return
    error = record.exc_info[1] if record.exc_info else None
    event(
        "logged",
        "error" if record.levelno >= logging.ERROR else "warning",
        logger=record.name,
        place=f"{record.filename}:{record.lineno}",
        **(describe_error(error) if error is not None else {}),
    )


def _uncaught(_: type[BaseException], error: BaseException | None, *__: Any) -> None:
    """Log an error that ended a thread or the process."""
    if error is not None:
        event("uncaught error", "error", **describe_error(error))
