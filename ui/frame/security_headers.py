"""The security headers of every answer, with a content security policy.

The policy allows what the site itself serves and nothing from elsewhere: even if a visitor's text
slipped through as markup, it could load no image and run no script, neither its own nor another's.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ui.frame.first_answer import SCRIPT


def inline_scripts() -> str:
    """The hashes of the scripts in the document, Streamlit's and ours, as a policy names them."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.DOTALL)
    digests = (hashlib.sha256(script.encode()).digest() for script in [*scripts, SCRIPT])
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


POLICY = {
    "default-src": "'self'",
    "script-src": f"'self' blob: {inline_scripts()}",  # the components of the pages arrive as blobs
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    # the address of a page holds what the visitor typed: it goes to no other site
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class SecurityHeaders:
    """Adds `HEADERS` to every HTTP response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the response back with the headers."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
