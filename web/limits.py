"""Limits on what one visitor may send, so that no visitor slows down the others.

Messages that arrive too fast wait in their own connection, where waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving import limits
from serving.addresses import network_prefix
from web.messages import FILE, kind_of

CONNECTIONS_PER_SECOND, CONNECTION_BURST = 10, 300  # per address: a whole class may reload
_MESSAGE_TOO_BIG, _TRY_AGAIN_LATER = 1009, 1013  # WebSocket close codes


class RateLimiter:
    """A token bucket for each key: `burst` requests immediately, then `per_second`."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval, self._clock = 1 / per_second, clock
        self._burst_seconds = burst / per_second
        self._full_at: dict[Hashable, float] = {}  # when each bucket will be full again

    def delay(self, key: Hashable) -> float:
        """Count one request, and return the seconds that it has to wait."""
        now = self._clock()
        full_at = max(self._full_at.pop(key, now), now) + self._interval
        self._full_at[key] = full_at  # moves the key to the end; the first is least recently used
        while self._full_at[oldest := next(iter(self._full_at))] <= now:
            del self._full_at[oldest]
        return max(0.0, full_at - now - self._burst_seconds)

    def __len__(self) -> int:
        """The number of keys in memory."""
        return len(self._full_at)


class Limits:
    """Limits every WebSocket connection and every address, and rejects uploads.

    Behind a proxy that doesn't forward addresses, all visitors share the proxy's limits.
    """

    def __init__(
        self,
        app: ASGIApp,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._app, self.sleep = app, sleep
        self._open: Counter[str] = Counter()
        self._connections = RateLimiter(CONNECTIONS_PER_SECOND, CONNECTION_BURST, clock)
        # per connection, and per address
        self.messages = (
            RateLimiter(limits.MESSAGES_PER_SECOND, limits.MESSAGE_BURST, clock),
            RateLimiter(limits.ADDRESS_MESSAGES_PER_SECOND, limits.ADDRESS_MESSAGE_BURST, clock),
        )
        self.files = (
            RateLimiter(limits.FILES_PER_SECOND, limits.FILE_BURST, clock),
            RateLimiter(limits.ADDRESS_FILES_PER_SECOND, limits.ADDRESS_FILE_BURST, clock),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; WebSocket connections are limited, and uploads are rejected."""
        if scope["type"] == "http" and "/_stcore/upload_file" in scope["path"]:
            await PlainTextResponse("This site doesn't accept files.", 403)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = HTTPConnection(scope).client
        address = network_prefix(client.host) if client else ""
        if self._open[address] >= limits.MAX_SESSIONS_PER_ADDRESS:
            await receive()  # the handshake
            return await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
        self._open[address] += 1
        try:
            await self.sleep(self._connections.delay(address))
            connection = Connection(self, address, receive, send)
            await self._app(scope, connection.receive, connection.send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


class Connection:
    """A WebSocket connection with rate limits."""

    def __init__(self, shared: Limits, address: str, receive: Receive, send: Send) -> None:
        self._shared, self._address = shared, address
        self._receive, self._send = receive, send
        self._sending, self._is_closed = asyncio.Lock(), False

    async def receive(self) -> Message:
        """Return the next message for Streamlit once the limits allow it."""
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return message
            async with self._sending:  # responses to a client that doesn't read would fill memory
                pass
            await self._wait(self._shared.messages)
            content = message.get("bytes") or b""
            if len(content) > limits.MAX_MESSAGE_BYTES:
                return await self._close(_MESSAGE_TOO_BIG)
            kind = kind_of(content)
            if kind == FILE:
                await self._wait(self._shared.files)
            if kind is not None:
                return message

    async def send(self, message: Message) -> None:
        """Send a message to the browser, unless the connection is closed."""
        async with self._sending:
            if not self._is_closed:
                await self._send(message)

    async def _wait(self, limiters: tuple[RateLimiter, RateLimiter]) -> None:
        of_connection, of_address = limiters
        await self._shared.sleep(max(of_connection.delay(self), of_address.delay(self._address)))

    async def _close(self, code: int) -> Message:
        self._is_closed = True
        await self._send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}
