"""How fast one visitor may ask: runs of a page a second, and open pages of one address.

A script that sends thousands of messages gets them answered at this pace. The rest waits in its own
connection, where it costs this process nothing, and other visitors keep their turns.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.limits import BURST_OF_MESSAGES, MAX_SESSIONS_OF_AN_ADDRESS, MESSAGES_A_SECOND

_TRY_AGAIN_LATER = 1013  # the code of a closed WebSocket


def network(address: str) -> str:
    """What counts as one address: of version 6 the network of a home or a machine, its first half.

    A text that is no address stays as it is.
    """
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(read, ipaddress.IPv4Address):
        return address
    if read.ipv4_mapped is not None:
        return str(read.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(read), 64), strict=False))


class Allowance:
    """A token bucket: `burst` messages at once, then so many a second.

    clock: seconds that only grow.
    """

    def __init__(
        self, a_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._a_second, self._burst, self._clock = a_second, burst, clock
        self._left, self._last = float(burst), clock()

    def take(self) -> float:
        """Take one message; for how many seconds it has to wait."""
        now = self._clock()
        self._left = min(self._left + (now - self._last) * self._a_second, self._burst) - 1
        self._last = now
        return max(0.0, -self._left / self._a_second)


class Paced:
    """Holds each WebSocket to its pace, and each address to a number of them.

    Behind a proxy that does not tell who asks, all visitors have the address of the proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        a_second: float = MESSAGES_A_SECOND,
        burst: int = BURST_OF_MESSAGES,
        sessions: int = MAX_SESSIONS_OF_AN_ADDRESS,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._app, self._wait = app, wait
        self._a_second, self._burst, self._sessions = a_second, burst, sessions
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the connection on, its messages at their pace."""
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        client = HTTPConnection(scope).client
        address = network(client.host) if client else ""
        if self._open[address] >= self._sessions:
            await receive()  # the handshake
            return await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
        allowance = Allowance(self._a_second, self._burst)

        async def paced() -> Message:
            message = await receive()
            seconds = allowance.take() if message["type"] == "websocket.receive" else 0.0
            if seconds:
                await self._wait(seconds)
            return message

        self._open[address] += 1
        try:
            await self._app(scope, paced, send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
