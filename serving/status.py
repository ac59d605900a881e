"""How the site is, for whoever runs it: /healthz, /readyz and /metrics, and the counting of visits.

/metrics is for the machine itself: clients at a loopback address that came without a proxy. With a
token in ATTENTION_LAB_METRICS_TOKEN it is for whoever sends it, from anywhere, and for nobody else.
Everybody else is told that there is no such page. A proxy on this machine that adds no header and
asks by a local name looks like the machine itself: behind a proxy a token has to be set.
"""

from __future__ import annotations

import hmac
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pretrained import settings
from serving import cache, compute, metrics, models, warmup
from serving.limits import STUCK_SECONDS
from serving.queues import GENERATIONS, MEASUREMENTS, TRAININGS

TOKEN_VARIABLE = settings.METRICS_TOKEN.name
QUEUES = (GENERATIONS, MEASUREMENTS, TRAININGS)

_LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}  # the last: where one socket serves both
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}
# What proxies add, by the beginnings of its names. uvicorn may take the client's address from such
# a header, so with one of them that address proves nothing.
_FORWARDED = (
    "forwarded", "via", "x-forwarded", "x-real-ip", "x-original", "x-client-ip", "x-cluster-",
    "x-envoy-", "x-amzn-", "x-appengine-", "x-azure-", "x-arr-", "x-scheme", "x-request-id",
    "cf-", "cdn-", "true-client-ip", "fly-", "fastly-", "akamai-", "client-ip", "traceparent",
)  # fmt: skip
_NOT_KEPT = {"Cache-Control": "no-store"}


class Watched:
    """Counts the visits to an ASGI app, one a WebSocket, and the errors that end a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        try:
            if _is_withheld(scope):
                await PlainTextResponse("Not Found", 404, _NOT_KEPT)(scope, receive, send)
            elif scope["type"] == "websocket":
                with metrics.visit():
                    await self._app(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except Exception as error:
            metrics.error(error, "request")
            raise


def _is_withheld(scope: Scope) -> bool:
    """Whether this asks for Streamlit's own numbers without being allowed to read any."""
    is_asked = scope.get("path", "").endswith("/_stcore/metrics")
    return is_asked and not may_read(HTTPConnection(scope))


def routes(*warm_up: str) -> list[Route]:
    """The three addresses; warm_up: the modules that are imported before the site is ready."""

    def readyz(_: Request) -> Response:
        reason = not_ready(*warm_up)
        answer = {"ready": True} if reason is None else {"ready": False, "reason": reason}
        return JSONResponse(answer, 200 if reason is None else 503, _NOT_KEPT)

    return [Route("/healthz", _healthz), Route("/readyz", readyz), Route("/metrics", _metrics)]


async def _healthz(_: Request) -> Response:
    """The process is alive. It waits for no thread, so it answers while models load."""
    return PlainTextResponse("ok", headers=_NOT_KEPT)


def not_ready(*warm_up: str) -> str | None:
    """Why no visitor should be sent here now, as a sentence; None if the site is ready."""
    held = compute.held_seconds()
    if held > STUCK_SECONDS:
        return f"One pass of a model has held all others up for {held:.0f} s."
    for queue in QUEUES:
        if queue.stuck_seconds > STUCK_SECONDS:
            return f"The queue of {queue.name} does not move."
    return warmup.lacking(*warm_up)


def _metrics(request: Request) -> Response:
    if not may_read(request):
        return PlainTextResponse("Not Found", 404, _NOT_KEPT)
    headers = {**_NOT_KEPT, "Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
    return Response(generate_latest(metrics.REGISTRY), headers=headers)


def may_read(request: HTTPConnection) -> bool:
    """Whether the numbers are for this client."""
    token = settings.METRICS_TOKEN.read()
    if token:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
        return same and scheme.lower() == "bearer"
    client = request.client.host if request.client else None
    return client in _LOOPBACK and not _is_forwarded(request) and _host(request) in _LOOPBACK_NAMES


def _is_forwarded(request: HTTPConnection) -> bool:
    """Whether a request shows that a proxy passed it on; a proxy may also hide that.

    Programs on this machine speak HTTP/1.1. A proxy that adds nothing, such as nginx with
    `proxy_pass` alone, speaks 1.0 by default.
    """
    is_old = request.scope.get("http_version", "1.1") == "1.0"
    return is_old or any(name.startswith(_FORWARDED) for name in request.headers)


def _host(request: HTTPConnection) -> str | None:
    """The name under which the client asked for the site.

    A proxy on the same machine has a loopback address too, but hands the visitor's name on.
    """
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None


class _Present(Collector):
    """What is there at the moment of asking."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges, read now."""
        waiting = {queue.name: queue.length for queue in QUEUES}
        yield _gauge("queue_length", "Jobs that wait.", "queue", waiting)
        requests, held = {"": compute.n_requests()}, {"": compute.held_seconds()}
        yield _gauge("compute_requests", "Computations that run or wait for a slot.", "", requests)
        yield _gauge("compute_held_seconds", "Seconds the oldest slot has been held.", "", held)
        cached = cache.nbytes_by_name()
        yield _gauge("cache_bytes", "Bytes cached for all visitors.", "function", cached)
        loaded = {"": models.loaded.n_cached}
        yield _gauge("models_loaded", "Models in memory.", "", loaded)
        yield _gauge("gpu_bytes", "Bytes of tensors on GPUs.", "device", _gpu_bytes())


def _gauge(name: str, says: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge with one value for each value of its label, or a single one without a label."""
    labels = [label] if label else []
    gauge = GaugeMetricFamily(f"{metrics.PREFIX}_{name}", says, labels=labels)
    for value, number in values.items():
        gauge.add_metric([value] if label else [], number)
    return gauge


def _gpu_bytes() -> dict[str, float]:
    """Bytes by device; nothing before somebody else imported torch and used a GPU."""
    torch = sys.modules.get("torch")
    cuda: Any = getattr(torch, "cuda", None)  # not complete while another thread is importing torch
    if not hasattr(cuda, "memory_allocated") or not cuda.is_initialized():
        return {}
    return {str(i): cuda.memory_allocated(i) for i in range(cuda.device_count())}


metrics.REGISTRY.register(_Present())
