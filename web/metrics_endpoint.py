"""The route /metrics, and the middleware that counts visits and failed requests.

Without a token /metrics answers this machine alone: clients at a loopback address that came without
a proxy. With a token in ATTENTION_LAB_METRICS_TOKEN it answers whoever sends the token, from
anywhere. All others get 404. A proxy on this machine that adds no header and uses a local host name
looks like the machine itself, so behind a proxy a token has to be set.
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
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pretrained import settings
from serving import cache, compute, metrics, models
from web import health

TOKEN_VARIABLE = settings.METRICS_TOKEN.name

_LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}  # the last: where one socket serves both
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}
# Prefixes of headers that proxies add. uvicorn may take the client's address from such a header, so
# with one of them that address proves nothing.
_FORWARDED = (
    "forwarded", "via", "x-forwarded", "x-real-ip", "x-original", "x-client-ip", "x-cluster-",
    "x-envoy-", "x-amzn-", "x-appengine-", "x-azure-", "x-arr-", "x-scheme", "x-request-id",
    "cf-", "cdn-", "true-client-ip", "fly-", "fastly-", "akamai-", "client-ip", "traceparent",
)  # fmt: skip


class RequestMetrics:
    """Counts visits, one for each WebSocket, and the errors that end a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        try:
            if _is_hidden(scope):
                await PlainTextResponse("Not Found", 404, health.NO_STORE)(scope, receive, send)
            elif scope["type"] == "websocket":
                with metrics.visit():
                    await self._app(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except Exception as error:
            metrics.error(error, "request")
            raise


def _is_hidden(scope: Scope) -> bool:
    """Whether this is a request for Streamlit's own metrics by a client that may read none."""
    is_for_metrics = scope.get("path", "").endswith("/_stcore/metrics")
    return is_for_metrics and not may_read(HTTPConnection(scope))


def route() -> Route:
    """The route /metrics, in the format of Prometheus."""
    return Route("/metrics", _metrics)


def _metrics(request: Request) -> Response:
    if not may_read(request):
        return PlainTextResponse("Not Found", 404, health.NO_STORE)
    headers = {**health.NO_STORE, "Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
    return Response(generate_latest(metrics.REGISTRY), headers=headers)


def may_read(request: HTTPConnection) -> bool:
    """Whether this client may read the metrics."""
    token = settings.METRICS_TOKEN.read()
    if token:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
        return same and scheme.lower() == "bearer"
    client = request.client.host if request.client else None
    return client in _LOOPBACK and not _is_forwarded(request) and _host(request) in _LOOPBACK_NAMES


def _is_forwarded(request: HTTPConnection) -> bool:
    """Whether a request shows that a proxy forwarded it; a proxy may also hide that.

    Programs on this machine use HTTP/1.1. A proxy that adds nothing, such as nginx with
    `proxy_pass` alone, uses 1.0 by default.
    """
    is_old = request.scope.get("http_version", "1.1") == "1.0"
    return is_old or any(name.startswith(_FORWARDED) for name in request.headers)


def _host(request: HTTPConnection) -> str | None:
    """The host name in the request, which a proxy on the same machine forwards."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None


class _CurrentState(Collector):
    """Gauges that are read at the moment of the request."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges with their values now."""
        waiting = {queue.name: queue.length for queue in health.QUEUES}
        yield _gauge("queue_length", "Jobs that wait.", "queue", waiting)
        requests, held = {"": compute.n_requests()}, {"": compute.held_seconds()}
        yield _gauge("compute_requests", "Computations that run or wait for a slot.", "", requests)
        yield _gauge("compute_held_seconds", "Seconds the oldest slot has been held.", "", held)
        cached = cache.nbytes_by_name()
        yield _gauge("cache_bytes", "Bytes cached for all visitors.", "function", cached)
        loaded = {"": models.loaded.n_cached}
        yield _gauge("models_loaded", "Models in memory.", "", loaded)
        yield _gauge("gpu_bytes", "Bytes of tensors on GPUs.", "device", _gpu_bytes())


def _gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge with one value for each value of its label, or a single one without a label."""
    labels = [label] if label else []
    gauge = GaugeMetricFamily(f"{metrics.PREFIX}_{name}", help_text, labels=labels)
    for value, number in values.items():
        gauge.add_metric([value] if label else [], number)
    return gauge


def _gpu_bytes() -> dict[str, float]:
    """Bytes by device; empty until some other code has imported torch and used a GPU."""
    torch = sys.modules.get("torch")
    cuda: Any = getattr(torch, "cuda", None)  # not complete while another thread is importing torch
    if not hasattr(cuda, "memory_allocated") or not cuda.is_initialized():
        return {}
    return {str(i): cuda.memory_allocated(i) for i in range(cuda.device_count())}


metrics.REGISTRY.register(_CurrentState())
