"""Sends recorded passes, generations and measurements to the model server, or runs them here.

ATTENTION_LAB_SERVE_URL is the server's address. If the server is busy or doesn't respond, this
process computes the result itself. After a failure it also shows visitors a notice
(`outage_notice`), and tries the server again after `RETRY_SECONDS`. If a response is cut off
halfway, the run ends with an error message.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pretrained import Pretrained, settings
from serving import race as races
from serving import recording
from serving.backend import client
from serving.backend.codec import ServerBusy, ServerUnavailable
from serving.race import Event, RaceRequest
from serving.recording import RecordedPass
from serving.timing import measurement
from serving.timing.timed_contenders import TimingRequest

RETRY_SECONDS = 15.0
BROKE_OFF = "The model server stopped in the middle of this run. Press the button to start again."

_unavailable_until = 0.0  # on the monotonic clock
CheckStop = Callable[[int], None]


def outage_notice() -> str:
    """The message for visitors while the model server is unavailable; empty otherwise."""
    if time.monotonic() >= _unavailable_until:
        return ""
    return (
        "The model server isn't responding. Until it's back, this site computes everything itself, "
        "which may take longer."
    )


def record_pass(model: Pretrained, token_ids: Sequence[int]) -> RecordedPass:
    """Record one pass; errors as in `serving.recording.record_pass`."""
    request = {"model": model.spec.name, "token_ids": list(token_ids)}
    here = (
        recording.record_pass(model, token_ids) for _ in range(1)
    )  # a generator, so it runs lazily
    result: RecordedPass
    [result] = _events("record", request, lambda _: None, here)
    return result


def race(request: RaceRequest, check_stop: CheckStop) -> Iterator[Event]:
    """The events of a race; errors as in `serving.race.race`, or ServerUnavailable."""
    return _events("race", asdict(request), check_stop, races.race(request, check_stop))


def measure(question: TimingRequest, check_stop: CheckStop) -> Iterator[measurement.Event]:
    """The events of a measurement; errors as in `measurement.measure`, or ServerUnavailable."""
    here = measurement.measure(question, check_stop)
    return _events("measure", asdict(question), check_stop, here)


def _events(
    path: str, request: dict[str, Any], check_stop: CheckStop, local_events: Iterator[Any]
) -> Iterator[Any]:
    """The server's events; those of the generator `local_events` if the server sends none."""
    url, has_begun = settings.SERVE_URL.read(), False
    if url and not outage_notice():
        try:
            for event in client.stream(f"{url.rstrip('/')}/{path}", request, check_stop):
                has_begun = True
                yield event
            return
        except (ServerBusy, ServerUnavailable) as error:
            if isinstance(error, ServerUnavailable):
                _mark_unavailable(error)
            if has_begun:  # the rest would come from a different machine
                raise ServerUnavailable(BROKE_OFF) from error
    yield from local_events


def _mark_unavailable(error: ServerUnavailable) -> None:
    global _unavailable_until
    _unavailable_until = time.monotonic() + RETRY_SECONDS
    logger = logging.getLogger(__name__)
    logger.warning("the model server is unavailable: %s, %r", error, error.__cause__)
