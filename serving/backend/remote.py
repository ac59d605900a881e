"""A model server, as the site sees it.

An answer that breaks off is asked for once more: behind one address there may be several servers,
and the next one begins anew what the first did not end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import httpx2

from serving.backend import asks
from serving.backend.frames import ALIVE, BUSY, ERROR, Broken, Frame, unpacked
from serving.race import Ended, Event, RaceStep, Request
from serving.recording import Recording
from serving.timing import measurement
from serving.timing.subjects import Question

# A server says once a second that it is there.
CONNECT_SECONDS, SILENT_SECONDS = 2.0, 10.0
TRIES = 2
MODEL_HEADER = "serve_multiplexed_model_id"  # Ray sends a question to where its model is loaded


class Unavailable(Exception):
    """No server answered to the end."""


class Busy(Exception):
    """The server is there, and has as many questions as it takes."""


class Lacking(Exception):
    """The server is there, and the weights of the model are not."""


class ModelServer:
    """The server, or servers, behind an address such as "http://models:8600".

    All its questions raise `Busy` where it takes no further one now, and `Lacking` where it has no
    such model.
    """

    def __init__(self, url: str, client: httpx2.Client | None = None) -> None:
        timeout = httpx2.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS)
        # whoever asks waits for the server and for no other visitor of this site
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._url = url.rstrip("/")
        self._client = client or httpx2.Client(timeout=timeout, limits=limits)

    def record(self, model: str, token_ids: tuple[int, ...]) -> Recording:
        """A recorded pass; Unavailable where no server answers, errors as of `asks`."""
        question = {"model": model, "token_ids": list(token_ids)}
        cause: Exception | None = None
        for _ in range(TRIES):
            try:
                for frame in self._frames("record", model, question, _never):
                    return asks.read_recording(frame)
            except _NO_ANSWER as error:
                cause = error
        raise Unavailable from cause

    def race(
        self, request: Request, check_stop: Callable[[int], None], told: Told
    ) -> Iterator[Event]:
        """The events of a race that were not told; Unavailable where it is not told to its end."""
        cause: Exception | None = None
        for _ in range(TRIES):
            try:
                frames = self._frames("race", request.model, asdict(request), check_stop)
                for event in told.rest(map(asks.read_event, frames)):
                    yield event
                    if isinstance(event, Ended):
                        return
            except _NO_ANSWER as error:
                cause = error
        raise Unavailable from cause

    def measure(
        self, question: Question, check_stop: Callable[[int], None]
    ) -> Iterator[measurement.Event]:
        """The events of a measurement.

        Raises: Unavailable where no server begins it; ValueError where one broke off. Nobody goes
        on with it: half of the times would be another machine's.
        """
        begun, cause = False, None
        try:
            for frame in self._frames("measure", question.model, asdict(question), check_stop):
                yield asks.read_measured(frame)
                begun = True
            if begun:
                return
        except _NO_ANSWER as error:
            if begun:
                raise ValueError(
                    "The model server broke off in the middle of the measurement. Press Measure "
                    "to begin anew."
                ) from error
            cause = error
        raise Unavailable from cause

    def _frames(
        self, ask: str, model: str, question: Mapping[str, Any], check_stop: Callable[[int], None]
    ) -> Iterator[Frame]:
        """The frames of an answer as they come; `check_stop` is called about once a second."""
        with self._client.stream(
            "POST", f"{self._url}/{ask}", json=dict(question), headers={MODEL_HEADER: model}
        ) as response:
            if response.status_code != httpx2.codes.OK:
                if response.read().decode(errors="replace") == BUSY:
                    raise Busy
                raise Broken(f"answered with {response.status_code}")
            for frame in unpacked(response.iter_bytes()):
                check_stop(0)
                if frame.kind == ERROR:
                    error = asks.error_of(frame)
                    raise Lacking(str(error)) if isinstance(error, LookupError) else error
                if frame.kind != ALIVE:
                    yield frame


_NO_ANSWER = (httpx2.HTTPError, httpx2.InvalidURL, Broken, KeyError, TypeError)


class Told:
    """What was told of a race, so that a second telling goes on where the first broke off."""

    def __init__(self) -> None:
        self._tokens: list[tuple[int, int]] = []

    def rest(self, events: Iterator[Event]) -> Iterator[Event]:
        """The events that were not told yet; those without a token are told again.

        Raises: ValueError where the same request now leads to another text.
        """
        before = deque(self._tokens)
        for event in events:
            if isinstance(event, RaceStep):
                tokens = event.cached.token_id, event.uncached.token_id
                if not before:
                    self._tokens.append(tokens)
                elif before.popleft() == tokens:
                    continue
                else:
                    raise ValueError(
                        "The model server broke off, and the next one writes another text. "
                        "Press Generate to begin anew."
                    )
            yield event


def _never(_: int) -> None:
    """Nobody stops a single pass."""
