"""The model server, which runs models for one or more sites.

    uvicorn serving.backend.service:app --port 8600

POST /record, /race and /measure return a stream of events (`serving.backend.codec`). GET /healthz
returns 200 while the process is alive. The server sends a heartbeat every second, unless a
computation has held its slot for `STUCK_SECONDS`. The server has no authentication, so make it
reachable only from the sites.
"""

# ruff: noqa: E402
from __future__ import annotations

from pretrained import settings

settings.check_or_exit()  # before other imports: some modules read variables when imported

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from serving import cleanup, compute, log, metrics, models, race, recording
from serving.backend import codec
from serving.backend.codec import Event
from serving.jobs import JobStopped
from serving.limits import (
    MAX_CONCURRENT_REQUESTS,
    MAX_MAP_TOKENS,
    MAX_REQUEST_BYTES,
    STUCK_SECONDS,
    InvalidInput,
    check_tokens,
)
from serving.timing import measurement
from serving.timing.timed_contenders import TimingRequest

HEARTBEAT_SECONDS = 1.0
UNREAD_SECONDS = 60.0
_capacity = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)

CheckStop = Callable[[int], None]
Fields = dict[str, Any]


# ---- computations


def serve_record(request: Fields, check_stop: CheckStop) -> Iterator[Event]:
    """A recorded pass.

    Raises: ValueError for token ids out of range; OverLimit for too many of them.
    """
    model, ids = models.get(str(request["model"])), request["token_ids"]
    n_tokens = model.core.config.vocab_size
    if not ids or not all(isinstance(i, int) and 0 <= i < n_tokens for i in ids):
        raise ValueError(f"token_ids must be ids from 0 to {n_tokens - 1}, at least one")
    check_tokens(len(ids), MAX_MAP_TOKENS, "a recorded pass")
    check_stop(0)
    yield recording.record_pass(model, ids)


def serve_race(request: Fields, check_stop: CheckStop) -> Iterator[Event]:
    """The events of `serving.race`; pages have priority."""
    with compute.background():
        yield from race.race(race.RaceRequest(**request), check_stop)


def serve_measure(request: Fields, check_stop: CheckStop) -> Iterator[Event]:
    """The events of `serving.timing.measurement`; pages have priority."""
    question = TimingRequest(**request | {"contenders": tuple(request["contenders"])})
    with compute.background():
        yield from measurement.measure(question, check_stop)


HANDLERS: dict[str, Callable[[Fields, CheckStop], Iterator[Event]]] = {
    "record": serve_record,
    "race": serve_race,
    "measure": serve_measure,
}


# ---- responses


async def handle(request: Request) -> Response:
    """The response to a request: a stream of events, or an error message about the request."""
    path = request.url.path.rsplit("/", 1)[-1]
    if path not in HANDLERS:
        return PlainTextResponse(f"unknown path: use one of {', '.join(HANDLERS)}", 404)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            message = f"the request is larger than the limit of {MAX_REQUEST_BYTES:,} bytes"
            return PlainTextResponse(message, 413)
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return PlainTextResponse("the request must be a JSON object", 400)
    if not _capacity.acquire(blocking=False):
        return PlainTextResponse("all slots are in use; try again later", 503)
    return EventStream(path, values)


class EventStream(StreamingResponse):
    """A stream of events; each is computed after the previous one was sent, in its own thread.

    The computation stops before the model's next layer if the client disconnects or reads nothing
    for `UNREAD_SECONDS`. The response counts against `MAX_CONCURRENT_REQUESTS` until its thread has
    ended.
    """

    def __init__(self, path: str, request: Fields) -> None:
        self._cancelled = threading.Event()
        self._worker = ThreadPoolExecutor(1, "answer")
        self._lines = _lines(path, request, self._check_stop)
        super().__init__(self._stream(), media_type="application/octet-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, then end the thread."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(UNREAD_SECONDS):
                await send(message)

        try:
            await super().__call__(scope, receive, send_in_time)
        finally:
            self._cancelled.set()
            self._worker.submit(self._close)
            self._worker.shutdown(wait=False)

    def _close(self) -> None:
        self._lines.close()
        _capacity.release()

    async def _stream(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while True:
            pending = loop.run_in_executor(self._worker, next, self._lines, None)
            while not (await asyncio.wait([pending], timeout=HEARTBEAT_SECONDS))[0]:
                if compute.held_seconds() > STUCK_SECONDS:
                    return  # the site treats an incomplete response as an outage
                yield codec.HEARTBEAT
            line = pending.result()
            if line is None:
                return
            yield line

    def _check_stop(self, _: int = 0) -> None:
        if self._cancelled.is_set():
            raise JobStopped


def _lines(path: str, request: Fields, check_stop: CheckStop) -> Generator[bytes, None, None]:
    """The encoded events of a response. Errors become events and never stop the server."""
    try:
        yield from map(codec.encode, HANDLERS[path](request, check_stop))
    except JobStopped:
        return
    except InvalidInput as error:  # the visitor asked for something impossible; the server is fine
        yield codec.encode_error(error)
    except models.LOAD_ERRORS as error:
        metrics.count_error(error, "answer")
        yield codec.encode_error(error)
    except Exception as error:
        logging.getLogger(__name__).exception("an answer failed")
        metrics.count_error(error, "answer")
        message = "The model failed on this text. The server log has the details."
        yield codec.encode_error(ValueError(message))
    yield codec.END


async def healthz(_: Request) -> Response:
    """Report that the process is alive."""
    return PlainTextResponse("ok")


# Runs on import, because uvicorn and every Ray replica import this module.
log.start()
app = Starlette(
    routes=[
        Route("/healthz", healthz),
        *(Route(f"/{path}", handle, methods=["POST"]) for path in HANDLERS),
    ],
    lifespan=cleanup.lifespan,
)
