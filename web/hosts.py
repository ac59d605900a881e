"""The host names that the site serves, from `ATTENTION_LAB_HOSTS`.

The list protects against DNS rebinding, where a malicious site's name resolves to this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

# Probes use the IP address as the host. /metrics checks its client itself
# (`web/metrics_endpoint.py`).
_PROBES = frozenset({"/healthz", "/readyz", "/metrics", "/_stcore/health"})


class AllowedHosts(TrustedHostMiddleware):
    """Rejects requests for other hosts; allows every host if `hosts` is empty."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = ()) -> None:
        super().__init__(app, hosts or ["*"], www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] == "http" and scope["path"] in _PROBES:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket" and not _has_readable_origin(scope):
            await PlainTextResponse("Invalid origin header", 403)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _has_readable_origin(scope: Scope) -> bool:
    """Whether Streamlit can parse the origin; otherwise it would log a traceback."""
    try:
        urlsplit(Headers(scope=scope).get("origin", ""))
    except ValueError:
        return False
    return True
