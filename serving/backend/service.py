"""The model server: models behind three addresses, for the sites that know it.

    uvicorn serving.backend.service:app --port 8600

POST /record and /race answer with a stream of frames (`serving.backend.frames`); /healthz says that
the process lives. While a model loads or others have their turn a frame a second says that somebody
is still there. Whoever goes away stops their work before its next layer. It is made for a network
in which only sites can reach it: it asks nobody who they are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from serving import log, metrics, models
from serving.backend import asks
from serving.backend.frames import ALIVE, END, Frame, packed
from serving.jobs import Stopped
from serving.limits import MAX_OPEN_ANSWERS, MAX_QUESTION_BYTES

ALIVE_SECONDS = 1.0
_open = threading.BoundedSemaphore(MAX_OPEN_ANSWERS)


async def answer(request: Request) -> Response:
    """The answer to a question: a stream of frames, or what is wrong with the question."""
    ask = asks.ANSWERS.get(request.url.path.rsplit("/", 1)[-1])
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
        return PlainTextResponse("too many questions at once", 503)
    return StreamingResponse(_stream(ask, question), media_type="application/octet-stream")


async def _stream(ask: asks.Answer, question: dict[str, Any]) -> AsyncIterator[bytes]:
    """The frames of an answer that a thread of its own works on."""
    loop, frames = asyncio.get_running_loop(), asyncio.Queue[Frame]()
    gone = threading.Event()

    def check_stop(_: int = 0) -> None:
        if gone.is_set():
            raise Stopped

    def work() -> None:
        try:
            for frame in _answered(ask, question, check_stop):
                loop.call_soon_threadsafe(frames.put_nowait, frame)
        finally:
            _open.release()

    threading.Thread(target=work, name="answer", daemon=True).start()
    try:
        frame = Frame(ALIVE)
        while frame.kind != END:
            try:
                frame = await asyncio.wait_for(frames.get(), ALIVE_SECONDS)
            except TimeoutError:
                frame = Frame(ALIVE)
            yield packed(frame)
    finally:
        gone.set()


def _answered(
    ask: asks.Answer, question: dict[str, Any], check_stop: asks.CheckStop
) -> Iterator[Frame]:
    try:
        yield from ask(question, check_stop)
    except Stopped:
        pass
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
    ]
)
