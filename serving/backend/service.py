"""The model server: models behind three addresses, for the sites that know it.

    uvicorn serving.backend.service:app --port 8600

POST /record, /race and /measure answer with a stream of frames (`serving.backend.frames`); /healthz
says that the process lives. While a model loads or others compute, a frame a second says
that somebody is still there, unless one pass has held all others up for `STUCK_SECONDS`. Whoever
goes away stops their work before its next layer. It is made for a network in which only sites can
reach it: it asks nobody who they are.
"""

# ruff: noqa: E402
from __future__ import annotations

from pretrained import settings

settings.check_or_exit()  # first of all: modules read variables when they are imported

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import wait
from contextlib import closing, nullcontext
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from serving import cleanup, compute, log, metrics, models
from serving.backend import asks
from serving.backend.frames import ALIVE, BUSY, END, Frame, packed
from serving.jobs import Stopped
from serving.limits import MAX_OPEN_ANSWERS, MAX_QUESTION_BYTES, STUCK_SECONDS, Refused

ALIVE_SECONDS = 1.0
UNREAD_SECONDS = 60.0
FRAMES_AHEAD = 4  # of an answer, that wait for who asked to read them
_open = threading.BoundedSemaphore(MAX_OPEN_ANSWERS)


async def answer(request: Request) -> Response:
    """The answer to a question: a stream of frames, or what is wrong with the question."""
    name = request.url.path.rsplit("/", 1)[-1]
    ask = asks.ANSWERS.get(name)
    if ask is None:
        return PlainTextResponse("no such address", 404)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_QUESTION_BYTES:
            return PlainTextResponse("the question is too long", 413)
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):
        question = None
    if not isinstance(question, dict):
        return PlainTextResponse("the question must be a JSON object", 400)
    if not _open.acquire(blocking=False):
        return PlainTextResponse(BUSY, 503)
    return _Answer(ask, question, a_page_waits=name == "record")


class _Answer(StreamingResponse):
    """The frames of an answer, on which a thread of its own works.

    It ends when all is sent, when whoever asked is gone, or when he has read nothing for
    `UNREAD_SECONDS`. Work that no page waits for runs as a background job. Its place among the open
    ones is free when the thread has ended too.
    """

    def __init__(self, ask: asks.Answer, question: dict[str, Any], a_page_waits: bool) -> None:
        self._gone, self._has_thread = threading.Event(), False
        # free again when the thread has ended and nobody reads any more
        self._ended = _called_twice(_open.release)
        frames = self._frames(ask, question, a_page_waits)
        super().__init__(frames, media_type="application/octet-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames; afterwards nothing goes on."""

        async def in_time(message: Message) -> None:
            async with asyncio.timeout(UNREAD_SECONDS):
                await send(message)

        try:
            await super().__call__(scope, receive, in_time)
        finally:
            self._gone.set()
            self._ended()
            if not self._has_thread:
                self._ended()

    async def _frames(
        self, ask: asks.Answer, question: dict[str, Any], a_page_waits: bool
    ) -> AsyncIterator[bytes]:
        loop, frames = asyncio.get_running_loop(), asyncio.Queue[Frame](FRAMES_AHEAD)

        def check_stop(_: int = 0) -> None:
            if self._gone.is_set():
                raise Stopped

        def put(frame: Frame) -> None:
            """Hand a frame over as soon as there is room: who does not read gets no more."""
            handed = asyncio.run_coroutine_threadsafe(frames.put(frame), loop)
            try:
                while not handed.done():
                    check_stop()
                    wait([handed], ALIVE_SECONDS)
            finally:
                handed.cancel()  # nobody reads any more; without effect on what was handed over

        def work() -> None:
            priority = nullcontext() if a_page_waits else compute.background()
            try:
                with priority, closing(_answered(ask, question, check_stop)) as answered:
                    for frame in answered:
                        put(frame)
            except Stopped:
                pass
            finally:
                self._ended()

        threading.Thread(target=work, name="answer", daemon=True).start()
        self._has_thread = True
        frame = Frame(ALIVE)
        while frame.kind != END:
            try:
                frame = await asyncio.wait_for(frames.get(), ALIVE_SECONDS)
            except TimeoutError:
                if compute.held_seconds() > STUCK_SECONDS:
                    return  # a site that hears nothing more does the work itself
                frame = Frame(ALIVE)
            yield packed(frame)


def _called_twice(then: Callable[[], None]) -> Callable[[], None]:
    """A function whose second call calls `then`."""
    first = threading.Lock()

    def call() -> None:
        if not first.acquire(blocking=False):
            then()

    return call


def _answered(
    ask: asks.Answer, question: dict[str, Any], check_stop: asks.CheckStop
) -> Generator[Frame, None, None]:
    try:
        yield from ask(question, check_stop)
    except Stopped:
        pass
    except Refused as error:  # what was asked for cannot be: no error of the server
        yield asks.error_frame(error)
    except models.LOAD_ERRORS as error:
        metrics.error(error, "answer")
        yield asks.error_frame(error)
    except Exception as error:  # the site says that it failed, the log why; others go on
        logging.getLogger(__name__).exception("an answer failed")
        metrics.error(error, "answer")
        yield asks.error_frame(ValueError("The model failed on this text; see the server log."))
    yield Frame(END)


async def alive(_: Request) -> Response:
    """That the process lives."""
    return PlainTextResponse("ok")


# Here, where uvicorn and every replica on Ray come by.
log.start()
app = Starlette(
    routes=[
        Route("/healthz", alive),
        *(Route(f"/{name}", answer, methods=["POST"]) for name in asks.ANSWERS),
    ],
    lifespan=cleanup.lifespan,
)
