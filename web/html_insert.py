"""Middleware that adds HTML, such as a style sheet, to every document that a browser opens."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# After the styles in the head, because the later of two rules with equal specificity wins.
_PLACE = b"<body>"


class HtmlInsert:
    """Inserts HTML at the start of the body of every document that a browser opens."""

    def __init__(self, app: ASGIApp, html: str) -> None:
        self._app, self._insert = app, _PLACE + html.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the HTML to a document in the response."""
        if not _is_navigation(scope):
            return await self._app(scope, receive, send)
        start: Message | None = None
        body = b""

        async def with_insert(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_document(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    whole = body.replace(_PLACE, self._insert, 1)
                    _set_size(start, len(whole))
                    await send(start)
                    await send({"type": "http.response.body", "body": whole})

        await self._app(_without_compression(scope), receive, with_insert)


def _is_navigation(scope: Scope) -> bool:
    """Whether a browser opens a document, rather than a script fetching something."""
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in Headers(scope=scope).get("accept", "")


def _without_compression(scope: Scope) -> Scope:
    """The same request for an uncompressed response, which is the only kind we can add to."""
    headers = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
    return {**scope, "headers": headers}


def _is_document(start: Message) -> bool:
    """Whether the response that starts here is HTML."""
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


def _set_size(start: Message, size: int) -> None:
    """Set the new size, and drop the ETag and date, which belong to the original file."""
    headers = MutableHeaders(raw=start["headers"])
    headers["content-length"] = str(size)
    del headers["etag"], headers["last-modified"]
