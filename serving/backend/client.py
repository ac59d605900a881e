"""The site's connection to a model server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

from serving.backend import codec
from serving.backend.codec import Event, ServerBusy, ServerUnavailable

# A server sends a heartbeat every second.
CONNECT_SECONDS, SILENT_SECONDS = 2.0, 10.0
MODEL_HEADER = "serve_multiplexed_model_id"  # Ray picks a replica that has this model loaded


@functools.cache
def http_client() -> httpx2.Client:
    """The HTTP client of this process, with unlimited connections so that no visitor waits."""
    return httpx2.Client(
        timeout=httpx2.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        headers={"Accept-Encoding": "identity"},  # decompressed data could have any size
    )


def stream(url: str, request: dict[str, Any], check_stop: Callable[[int], None]) -> Iterator[Event]:
    """Yield the events of a response as they arrive; calls `check_stop` about once a second.

    Raises: ServerBusy, ServerUnavailable, or the error that the server reports (`codec.decode`).
    """
    is_empty, headers = True, {MODEL_HEADER: str(request["model"])}
    try:
        with http_client().stream("POST", url, json=request, headers=headers) as response:
            if response.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
                raise ServerBusy("the model server has no free slot")
            if response.status_code != httpx2.codes.OK:
                raise ServerUnavailable(f"the model server returned {response.status_code}")
            for event in codec.decode(response.iter_raw()):
                check_stop(0)
                if event is not None:
                    is_empty = False
                    yield event
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServerUnavailable("the model server doesn't respond") from error
    if is_empty:
        raise ServerUnavailable("the model server sent an empty response")
