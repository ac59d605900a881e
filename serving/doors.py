"""By which names the site may be asked for, and which other sites may show it in a frame.

Both are for a site on the open internet, and set by whoever runs it:

    ATTENTION_LAB_HOSTS  the site's names, such as `lab.example.org *.example.org`. A page of a
        stranger whose name was made to point at this machine (DNS rebinding) is turned away. Not
        set: every name is taken.
    ATTENTION_LAB_EMBED  the sites that may frame it, such as `https://moodle.example.org`. Not set:
        none but itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pretrained import settings

HOSTS_VARIABLE, EMBED_VARIABLE = settings.HOSTS.name, settings.EMBED.name

# Whoever watches the machine asks by its address: a name proves nothing there. For /metrics it is
# looked at who asks (`serving/status.py`).
_FOR_PROBES = ("/healthz", "/readyz", "/metrics", "/_stcore/health")


def hosts() -> tuple[str, ...]:
    """The names of the site; empty if every name is taken. Raises ValueError as `Setting.read`."""
    return settings.HOSTS.read()


def frame_ancestors() -> str:
    """The sites that may frame this one, as a content security policy names them.

    Raises ValueError as `Setting.read`.
    """
    return " ".join(["'self'", *settings.EMBED.read()])


def _is_address(scope: Scope) -> bool:
    """Whether the page that asks for a connection, if it says which it is, can be read at all."""
    try:
        urlsplit(HTTPConnection(scope).headers.get("origin", ""))
    except ValueError:
        return False
    return True


class Doors:
    """Turns away whoever asks by a name that is not in `names`, and says who may frame the site.

    names: of hosts; without any, every name is taken. ancestors: as `frame_ancestors`; browsers
    obey this policy beside the one of the page itself.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str], ancestors: str) -> None:
        self._app, self._names = app, tuple(names)
        self._policy = f"frame-ancestors {ancestors}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer that the name is not known here."""

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("Content-Security-Policy", self._policy)
            await send(message)

        if scope["type"] == "websocket" and not _is_address(scope):
            await PlainTextResponse("The page that asks has no address.", 403)(scope, receive, send)
        elif self._names and scope["type"] in ("http", "websocket") and not self._knows(scope):
            answer = PlainTextResponse(
                "This site is not known by the name it was asked for. Whoever runs it adds the "
                f"name to {HOSTS_VARIABLE}.",
                421,  # Misdirected Request
            )
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, with_policy if scope["type"] == "http" else send)

    def _knows(self, scope: Scope) -> bool:
        if scope["path"].endswith(_FOR_PROBES):
            return True
        asked = HTTPConnection(scope).headers.get("host", "").lower()
        host = re.sub(r":\d+$", "", asked)
        return any(
            host.endswith(name[1:]) if name.startswith("*") else host == name
            for name in self._names
        )
