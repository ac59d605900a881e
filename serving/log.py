"""The log on standard error: JSON lines for programs that collect logs, or plain text.

ATTENTION_LAB_LOG=json writes one line an event. A line says when, how grave, what, and where it is
known the page, the milliseconds and the kind of an error:

    {"time": "2026-01-31T12:00:00.000+00:00", "level": "info", "event": "page run", "page": "heads",
     "milliseconds": 84.1}

No line holds what a visitor typed, the parameters of an address, or who the visitor is. The message
of an error may quote a text, so of errors only the class and the line of code are written; of what
other libraries log, warnings and errors, and of these the place in the code.

Without it the log is that of the libraries, which may quote what a visitor sent. Each record is
then bounded in length and written without control characters, and only its first line begins at
the margin, so that nothing a visitor sends looks like another record or reaches the terminal.
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
MAX_MESSAGE, MAX_RECORD = 1_000, 10_000  # characters: of a message or line, and of a record
MAX_FACT = 200  # characters of one value in a JSON line

_INDENT = "    "  # of the lines of a record after the first
_stream: TextIO | None = None  # None: no JSON lines are written
_writing = threading.Lock()
_format_record = logging.Handler.format


def start(stream: TextIO | None = None) -> None:
    """Write JSON lines from now on if the variable says so, else records of text that are safe.

    stream: of JSON lines, standard error by default.
    Raises ValueError as `EnvironmentVariable.read`.
    """
    global _stream
    if not settings.LOG_JSON.read():
        _start_text()
        return
    _stream = stream or sys.stderr
    # Streamlit and uvicorn give their loggers handlers of their own, at several moments of the
    # start: here, where all records pass, none of them prints a message beside our lines.
    logging.Logger.callHandlers = _library_record  # type: ignore[assignment, method-assign]
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda failure: _uncaught(
        failure.exc_type, failure.exc_value, failure.exc_traceback
    )
    sys.unraisablehook = lambda failure: _uncaught(
        failure.exc_type, failure.exc_value, failure.exc_traceback
    )


def is_on() -> bool:
    """Whether lines are written."""
    return _stream is not None


def event(name: str, level: str = "info", **facts: str | float) -> None:
    """Write one line if the log is on.

    name: what happened, a constant of the code. level: info, warning or error. facts:
    numbers, and names that the code or the table of contents chose: nothing of a visitor's.
    """
    if _stream is None:
        return
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    safe = {key: _safe_fact(value) for key, value in facts.items()}
    line = json.dumps({"time": now, "level": level, "event": name, **safe})
    with _writing, contextlib.suppress(OSError, ValueError):  # nobody reads it, or it was closed
        _stream.write(line + "\n")
        _stream.flush()


def _start_text() -> None:
    """Make the records of all handlers safe, and log errors of threads and warnings with them."""
    logging.Handler.format = _safe_record  # type: ignore[assignment, method-assign]
    logging.captureWarnings(True)
    threading.excepthook = lambda failure: _log_uncaught(failure.exc_value)
    sys.unraisablehook = lambda failure: _log_uncaught(failure.exc_value)


def _log_uncaught(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, SystemExit):
        logging.getLogger(__name__).error("uncaught error", exc_info=error)


def _safe_record(handler: logging.Handler, record: logging.LogRecord) -> str:
    """The text of a record, as `safe_record`, with whatever format the handler has."""
    return safe_record(_format_record(handler, record), record.getMessage())


def safe_record(text: str, message: str) -> str:
    """The text of one record without control characters, of at most `MAX_RECORD` characters.

    message: the part of the text that may hold line feeds of its own; they are escaped. Line feeds
    of a traceback stay, and what follows them is indented.
    """
    lines = text.replace(message, _plain(message, MAX_MESSAGE), 1).split("\n")
    head = list(_fitting(lines))
    tail = list(_fitting(reversed(lines[len(head) :])))[::-1]
    n_left_out = len(lines) - len(head) - len(tail)
    middle = [f"... {n_left_out} lines left out ..."] if n_left_out else []
    return f"\n{_INDENT}".join(head + middle + tail)


def _fitting(lines: Iterable[str]) -> Iterator[str]:
    """The first of these lines, made plain, that fit into half of a record."""
    room = MAX_RECORD // 2
    for line in lines:
        plain = _plain(line, MAX_MESSAGE)
        room -= len(plain) + 1 + len(_INDENT)
        if room < 0:
            return
        yield plain


def _plain(text: str, limit: int) -> str:
    """A text without control characters, of about `limit` characters at most."""
    return shortened(escaped(shortened(text, limit)), limit)


def escaped(text: str) -> str:
    """A text with control, formatting and other unprintable characters as escape sequences."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a text of more than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... {len(text) - 2 * half} characters left out ... {text[-half:]}"


def _safe_fact(value: str | float) -> str | float:
    return escaped(value[:MAX_FACT]) if isinstance(value, str) else value


def about(error: BaseException) -> dict[str, str]:
    """What may be written of an error: its class, and the line of code that raised it."""
    facts = {"kind": type(error).__name__}
    if error.__traceback__ is not None:
        facts["raised"] = _place(error.__traceback__)
    return facts


def _place(traceback: TracebackType) -> str:
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"


def _library_record(logger: logging.Logger, record: logging.LogRecord) -> None:
    """A record of Python's logging, by whichever library, without its message."""
    if record.levelno < logging.WARNING:
        return
    error = record.exc_info[1] if record.exc_info else None
    event(
        "logged",
        "error" if record.levelno >= logging.ERROR else "warning",
        logger=record.name,
        place=f"{record.filename}:{record.lineno}",
        **(about(error) if error is not None else {}),
    )


def _uncaught(_: type[BaseException], error: BaseException | None, *__: Any) -> None:
    """An error that ended a thread or the process."""
    if error is not None:
        event("uncaught error", "error", **about(error))
