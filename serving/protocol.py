"""What of Streamlit's protocol a visitor may use: what the pages of this site need, and no more.

Streamlit takes from every visitor what only some sites, or whoever develops one, have a use for:
files, the state of the source code's repository (for which it starts git, while all others wait),
and messages of any kind and of many megabytes, which it keeps as long as the visitor stays. It also
writes identifiers from messages into the log as they are, so only plain and short ones pass.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Form
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.limits import (
    BURST_OF_FILES,
    BURST_OF_FILES_OF_AN_ADDRESS,
    FILES_A_SECOND,
    FILES_A_SECOND_OF_AN_ADDRESS,
    MAX_MESSAGE_BYTES,
    MAX_WIDGETS,
)
from serving.pace import Allowance, OfAddresses, address_of

FILE = "backend_operation_request"  # what is made on a click, and other things that no page needs
KINDS = frozenset({"rerun_script", "stop_script", "app_heartbeat", FILE})
_FILE = "deferred_file"
_UPLOADS = "/_stcore/upload_file"
_TOO_BIG = 1009  # the code of a closed WebSocket

# The kinds of values that widgets of these pages have.
VALUES = frozenset(
    f"{kind}_value"
    for kind in ("trigger", "bool", "double", "int", "string", "json", "string_trigger",
                 "json_trigger", "double_array", "int_array", "string_array")
)  # fmt: skip
# Fields that hold a visitor's text or address: any characters, bounded by the size of the message.
TEXTS = frozenset(
    {
        "ClientState.query_string",
        "ClientState.page_name",
        "ContextInfo.url",
        "WidgetState.string_value",
        "WidgetState.json_value",
        "WidgetState.json_trigger_value",
        "StringArray.data",
        "StringTriggerValue.data",
    }
)
# All other fields hold identifiers, in printable ASCII. That of a widget ends with its key, which
# the page chose.
_IDENTIFIER = re.compile(r"[ -~]{0,100}")
_IDENTIFIERS = {
    "WidgetState.id": re.compile(r"[ -~]{0,250}"),
    "ContextInfo.color_scheme": re.compile("light|dark|"),
}


class Needed:
    """Passes on what pages need. Other messages are left out, and files are turned away.

    Whoever asks for many files waits between them: they are made one after the other for all.
    While a message to a browser cannot be sent, none of its own is taken: their answers would pile
    up in memory.
    form: Streamlit's class of a browser's messages. A message of more than `max_bytes` ends the
    connection: no browser has so much to say here.
    """

    def __init__(
        self,
        app: ASGIApp,
        form: type[Form],
        max_bytes: int = MAX_MESSAGE_BYTES,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        of_addresses: OfAddresses | None = None,
    ) -> None:
        self._app, self._form, self._max_bytes, self._wait = app, form, max_bytes, wait
        if of_addresses is None:
            of_addresses = OfAddresses(FILES_A_SECOND_OF_AN_ADDRESS, BURST_OF_FILES_OF_AN_ADDRESS)
        self._of_addresses = of_addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request or the connection on, without what is not needed."""
        if scope["type"] == "http" and _UPLOADS in scope["path"]:
            answer = PlainTextResponse("This site takes no files.", 403)
            return await answer(scope, receive, send)
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        is_closed, address = False, address_of(scope)
        files = Allowance(FILES_A_SECOND, BURST_OF_FILES)
        is_sent = asyncio.Event()
        is_sent.set()

        async def needed() -> Message:
            nonlocal is_closed
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                await is_sent.wait()
                content = message.get("bytes") or b""
                if len(content) > self._max_bytes:
                    await send({"type": "websocket.close", "code": _TOO_BIG})
                    is_closed = True
                    return {"type": "websocket.disconnect", "code": _TOO_BIG}
                kind = self._kind(content)
                if kind == FILE:
                    seconds = max(files.take(), self._of_addresses.take(address))
                    if seconds:
                        await self._wait(seconds)
                if kind in KINDS:
                    return message

        async def while_open(message: Message) -> None:
            if is_closed:
                return
            is_sent.clear()
            try:
                await send(message)
            finally:
                is_sent.set()

        await self._app(scope, needed, while_open)

    def _kind(self, content: bytes) -> str | None:
        """What a message asks for; None where it is not Streamlit's, or nothing that pages send."""
        try:
            message: Any = self._form.FromString(content)
        except DecodeError:
            return None
        kind: str | None = message.WhichOneof("type")
        if kind == FILE and message.backend_operation_request.WhichOneof("payload") != _FILE:
            return None
        return kind if _is_plain(message) else None


def _is_plain(message: Any) -> bool:
    """Whether a message holds short plain identifiers, and few values, of kinds that pages have."""
    if message.HasField("rerun_script"):
        widgets = message.rerun_script.widget_states.widgets
        if len(widgets) > MAX_WIDGETS:
            return False
        if any(widget.WhichOneof("value") not in VALUES | {None} for widget in widgets):
            return False
    return all(
        field in TEXTS or _IDENTIFIERS.get(field, _IDENTIFIER).fullmatch(text)
        for field, text in _strings(message)
    )


def _strings(message: Form) -> Iterator[tuple[str, str]]:
    """All texts in a message, each with the full name of its field."""
    for field, value in message.ListFields():
        for part in value if field.is_repeated else [value]:
            if isinstance(part, Form):
                yield from _strings(part)
            elif isinstance(part, str):
                yield field.full_name, part
