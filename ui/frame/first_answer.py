"""What the site adds to the document that a browser opens first: a style sheet and its scripts.

Sent by the page's script, the style sheet would come after the title, which would be painted in
one place and then jump to another. `style.css` holds what no option of the theme decides, with the
sizes of `ui/canvas/shared/scale.css` and the site's mark, `logo.svg`. Each script says at its head
what it is for; those in `glossary/` mark and explain terms, those in `in_class/` serve teachers.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FOLDER = Path(__file__).parent
_IN_CLASS = ("zoom", "projector", "pictures", "one_picture", "embedding", "print")
_SCRIPTS = (
    *("color_scheme", "history"),
    *(f"in_class/{name}" for name in _IN_CLASS),
    *("top_down", "keep_place", "too_long", "copy", "answered"),
    *("glossary/terms", "glossary/glossary"),
)
SCRIPT = "".join((_FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
_SIZES = (_FOLDER.parent / "canvas" / "shared" / "scale.css").read_text(encoding="utf-8")
_LOGO = base64.b64encode((_FOLDER / "logo.svg").read_bytes()).decode()
STYLE = f":root {{ --logo: url(data:image/svg+xml;base64,{_LOGO}) }}\n" + _SIZES
for _name in ("style", "glossary/glossary", "in_class/in_class"):
    STYLE += (_FOLDER / f"{_name}.css").read_text(encoding="utf-8")
# Behind the styles of the head: of two rules that are equally strong the later one holds.
_PLACE = b"<body>"
_ADDED = _PLACE + f"<style>{STYLE}</style><script>{SCRIPT}</script>".encode()


def inline_scripts() -> list[str]:
    """The scripts that stand in the document itself: Streamlit's, and ours behind them."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    return [*re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, re.DOTALL), SCRIPT]


class FirstAnswer:
    """Puts the style sheet and the script into every HTML document that a browser opens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an HTML document comes back with more in it."""
        if not _asks_for_a_document(scope):
            return await self._app(scope, receive, send)
        start: Message | None = None
        body = b""

        async def with_more(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_document(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    whole = body.replace(_PLACE, _ADDED, 1)
                    _set_size(start, len(whole))
                    await send(start)
                    await send({"type": "http.response.body", "body": whole})

        await self._app(_without_compression(scope), receive, with_more)


def _asks_for_a_document(scope: Scope) -> bool:
    """Whether the request is a browser's for a page, as when an address is opened."""
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in Headers(scope=scope).get("accept", "")


def _without_compression(scope: Scope) -> Scope:
    """The request of a browser that takes plain text alone: a compressed one could not be read."""
    headers = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
    return {**scope, "headers": headers}


def _is_document(start: Message) -> bool:
    """Whether the response that starts here is HTML."""
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


def _set_size(start: Message, size: int) -> None:
    """Give the response its size. It is no longer the file that `etag` and the date belong to."""
    headers = MutableHeaders(raw=start["headers"])
    headers["content-length"] = str(size)
    del headers["etag"], headers["last-modified"]
