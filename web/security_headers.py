"""Security headers for every response, including a content security policy.

The policy allows only what the site itself serves. Even if a visitor's text got into the page as
markup, it couldn't load an image or run a script.
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
    """Headers that allow only these inline scripts.

    embedding_sites: other sites that may show this one in a frame.
    """
    policy = {
        "default-src": "'self'",
        # Streamlit loads our components from blob URLs
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
        # a page's URL contains the visitor's text, so it must not be sent to other sites
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def _digest(script: str) -> str:
    """The digest of a script in the format of a content security policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


class SecurityHeaders:
    """Adds headers to every HTTP response."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app, self._headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to the response."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
