"""The security headers of every response, with a content security policy.

The policy allows what the site itself serves and nothing from elsewhere: even if a visitor's text
slipped through as markup, it could load no image and run no script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def security_headers(
    inline_scripts: Iterable[str], embedding_sites: Iterable[str] = ()
) -> dict[str, str]:
    """The headers of a site with these inline scripts and no others.

    embedding_sites: the other sites that may show this one in a frame.
    """
    policy = {
        "default-src": "'self'",
        # the components of the pages arrive as blobs
        "script-src": " ".join(["'self'", "blob:", *map(_digest, inline_scripts)]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self' ws: wss:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "frame-ancestors": " ".join(["'self'", *embedding_sites]),
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        # the address of a page holds what the visitor typed: it goes to no other site
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def _digest(script: str) -> str:
    """The digest of a script, as a policy writes it."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class SecurityHeaders:
    """Adds headers to every HTTP response."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the response back with the headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
