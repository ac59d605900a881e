"""A recorded pass, a race, a measurement: from the model server, if there is one, or from here.

ATTENTION_LAB_SERVE_URL names the server. Where it does not answer, this process does the work and
says so (`trouble`); the server is asked again a little later. What a busy server has no room for,
or one without the weights, is done here as well, and the next question is asked of it again.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Sequence

from pretrained import Pretrained, settings
from serving import race as races
from serving import recording
from serving.backend.remote import Busy, Lacking, ModelServer, Told, Unavailable
from serving.race import Event, Request
from serving.recording import Recording
from serving.timing import measurement
from serving.timing.subjects import Question

VARIABLE = settings.SERVE_URL.name
ASK_AGAIN_SECONDS = 15.0

_silent_until = 0.0  # on the monotonic clock: until then the server is not asked


@functools.cache
def _server_at(url: str) -> ModelServer:
    return ModelServer(url)


def _server() -> ModelServer | None:
    """The server to ask now; None without one, and while it is silent."""
    url = settings.SERVE_URL.read()
    return _server_at(url) if url and not trouble() else None


def trouble() -> str:
    """What a visitor should know of where models run now, or nothing."""
    if time.monotonic() >= _silent_until:
        return ""
    return (
        "The model server does not answer. This site computes everything itself meanwhile, "
        "which may take longer."
    )


def _was_silent(error: Unavailable) -> None:
    global _silent_until
    _silent_until = time.monotonic() + ASK_AGAIN_SECONDS
    logger = logging.getLogger(__name__)
    logger.warning("the model server does not answer: %r", error.__cause__)


def record(model: Pretrained, token_ids: Sequence[int]) -> Recording:
    """One recorded pass; errors as of `serving.recording.record`."""
    server = _server()
    if server is not None:
        try:
            return server.record(model.spec.name, tuple(token_ids))
        except (Busy, Lacking):
            pass
        except Unavailable as error:
            _was_silent(error)
    return recording.record(model, token_ids)


def race(request: Request, check_stop: Callable[[int], None]) -> Iterator[Event]:
    """The events of a race; what a server did not tell is told by this process."""
    server, told = _server(), Told()
    if server is not None:
        try:
            yield from server.race(request, check_stop, told)
            return
        except (Busy, Lacking):
            pass
        except Unavailable as error:
            _was_silent(error)
    yield from told.rest(races.race(request, check_stop))


def measure(question: Question, check_stop: Callable[[int], None]) -> Iterator[measurement.Event]:
    """The events of a measurement, all from one place."""
    server = _server()
    if server is not None:
        try:
            yield from server.measure(question, check_stop)
            return
        except (Busy, Lacking):
            pass
        except Unavailable as error:
            _was_silent(error)
    yield from measurement.measure(question, check_stop)
