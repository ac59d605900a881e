"""The route /metrics, and the middleware that counts visits and failed requests.

Without a token, /metrics only serves this machine: clients at a loopback address, not through a
proxy. If ATTENTION_LAB_METRICS_TOKEN is set, it serves any client that sends the token. All other
clients get 404. A proxy on this machine that adds no headers and uses a local host name looks like
the machine itself, so behind a proxy you must set a token.
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

_LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}  # the last: an IPv6 socket that serves IPv4
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}
# Prefixes of headers that proxies add. uvicorn may take the client's address from such a header, so
# if one is present, the address proves nothing.
_FORWARDED = (
    "forwarded", "via", "x-forwarded", "x-real-ip", "x-original", "x-client-ip", "x-cluster-",
    "x-envoy-", "x-amzn-", "x-appengine-", "x-azure-", "x-arr-", "x-scheme", "x-request-id",
    "cf-", "cdn-", "true-client-ip", "fly-", "fastly-", "akamai-", "client-ip", "traceparent",
)  # fmt: skip


class RequestMetrics:
    """Counts visits (one per WebSocket) and the errors that end a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        try:
            if _is_hidden(scope):
                await PlainTextResponse("Not Found", 404, health.NO_STORE)(scope, receive, send)
            elif scope["type"] == "websocket":
                with metrics.track_visit():
                    await self._app(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except Exception as error:
            metrics.count_error(error, "request")
            raise


def _is_hidden(scope: Scope) -> bool:
    """Whether a client without permission requests Streamlit's own metrics."""
    is_for_metrics = scope.get("path", "").endswith("/_stcore/metrics")
    return is_for_metrics and not may_read(HTTPConnection(scope))


def route() -> Route:
    """The route /metrics, in Prometheus format."""
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
        scheme, _, inputs = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(inputs.strip().encode("latin-1"), token.encode())
        return same and scheme.lower() == "bearer"
    client = request.client.host if request.client else None
    return client in _LOOPBACK and not _is_forwarded(request) and _host(request) in _LOOPBACK_NAMES


def _is_forwarded(request: HTTPConnection) -> bool:
    """Whether there are signs that a proxy forwarded this request; some proxies leave none.

    Programs on this machine use HTTP/1.1. A proxy that adds no headers, such as nginx with only
    `proxy_pass`, uses HTTP/1.0 by default.
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
    """Gauges whose values are read when /metrics is requested."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges with their current values."""
        waiting = {queue.name: queue.length for queue in health.QUEUES}
        yield _gauge("queue_length", "Waiting jobs.", "queue", waiting)
        requests, held = {"": compute.n_requests()}, {"": compute.held_seconds()}
        yield _gauge("compute_requests", "Running and waiting computations.", "", requests)
        yield _gauge("compute_held_seconds", "Seconds the oldest slot has been held.", "", held)
        cached = cache.nbytes_by_name()
        yield _gauge("cache_bytes", "Bytes cached for all visitors.", "function", cached)
        loaded = {"": models.by_key.n_cached}
        yield _gauge("models_loaded", "Models in memory.", "", loaded)
        yield _gauge("gpu_bytes", "Bytes of tensors on GPUs.", "device", _gpu_bytes())


def _gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """A gauge with one value per label value, or a single value if it has no label."""
    labels = [label] if label else []
    gauge = GaugeMetricFamily(f"{metrics.PREFIX}_{name}", help_text, labels=labels)
    for value, number in values.items():
        gauge.add_metric([value] if label else [], number)
    return gauge


def _gpu_bytes() -> dict[str, float]:
    """Bytes by device; empty until other code has imported torch and used a GPU."""
    torch = sys.modules.get("torch")
    cuda: Any = getattr(torch, "cuda", None)  # incomplete while another thread imports torch
    if not hasattr(cuda, "memory_allocated") or not cuda.is_initialized():
        return {}
    return {str(i): cuda.memory_allocated(i) for i in range(cuda.device_count())}


metrics.REGISTRY.register(_CurrentState())
