"""One JSON line an event on standard error, for programs that collect logs.

Switched on by ATTENTION_LAB_LOG=json. A line says when, how grave, what, and where it is known the
page, the milliseconds and the kind of an error:

    {"time": "2026-01-31T12:00:00.000+00:00", "level": "info", "event": "page run", "page": "heads",
     "milliseconds": 84.1}

No line holds what a visitor typed, the parameters of an address, or who the visitor is. The message
of an error may quote a text, so of errors only the class and the line of code are written; of what
other libraries log, warnings and errors, and of these the place in the code.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

VARIABLE = "ATTENTION_LAB_LOG"

_stream: TextIO | None = None  # None: nothing is written
_writing = threading.Lock()


def start(stream: TextIO | None = None) -> None:
    """Write JSON lines from now on if the variable says so; stream: standard error by default.

    Raises: ValueError for a value of the variable that means nothing.
    """
    global _stream
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "json"):
        raise ValueError(f"{VARIABLE} may be 'json' or empty, got {wanted!r}")
    if not wanted:
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
    line = json.dumps({"time": now, "level": level, "event": name, **facts})
    with _writing, contextlib.suppress(OSError, ValueError):  # nobody reads it, or it was closed
        _stream.write(line + "\n")
        _stream.flush()


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
