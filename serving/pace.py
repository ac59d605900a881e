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
from functools import partial

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.limits import (
    BURST_OF_AN_ADDRESS,
    BURST_OF_MESSAGES,
    MAX_SESSIONS_OF_AN_ADDRESS,
    MESSAGES_A_SECOND,
    MESSAGES_A_SECOND_OF_AN_ADDRESS,
)

_TRY_AGAIN_LATER = 1013  # the code of a closed WebSocket
_FEW_ADDRESSES = 1_000


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

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the burst is missing: a new one would be the same."""
        return self._left + (self._clock() - self._last) * self._a_second >= self._burst


class OfAddresses:
    """An `Allowance` for each address: whoever connects again and again has no more than before."""

    def __init__(
        self, a_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._new = partial(Allowance, a_second, burst, clock)
        self._allowances: dict[str, Allowance] = {}
        self._look_at = _FEW_ADDRESSES  # so many, and those that are whole again are forgotten

    def take(self, address: str) -> float:
        """Take one message of an address; for how many seconds it has to wait."""
        if len(self._allowances) >= self._look_at:
            spent = {key: left for key, left in self._allowances.items() if not left.is_whole}
            self._allowances, self._look_at = spent, 2 * len(spent) + _FEW_ADDRESSES
        if address not in self._allowances:
            self._allowances[address] = self._new()
        return self._allowances[address].take()

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._allowances)


def address_of(scope: Scope) -> str:
    """The address of whoever asks, as `network` counts it; empty where nobody knows it."""
    client = HTTPConnection(scope).client
    return network(client.host) if client else ""


class Paced:
    """Holds each WebSocket to its pace, and each address to another, and to a number of them.

    Behind a proxy that does not tell who asks, all visitors have the address of the proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        a_second: float = MESSAGES_A_SECOND,
        burst: int = BURST_OF_MESSAGES,
        sessions: int = MAX_SESSIONS_OF_AN_ADDRESS,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        of_addresses: OfAddresses | None = None,
    ) -> None:
        self._app, self._wait = app, wait
        if of_addresses is None:
            of_addresses = OfAddresses(MESSAGES_A_SECOND_OF_AN_ADDRESS, BURST_OF_AN_ADDRESS)
        self._of_addresses = of_addresses
        self._a_second, self._burst, self._sessions = a_second, burst, sessions
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the connection on, its messages at their pace."""
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        address = address_of(scope)
        if self._open[address] >= self._sessions:
            await receive()  # the handshake
            return await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER})
        allowance = Allowance(self._a_second, self._burst)

        async def paced() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                seconds = max(allowance.take(), self._of_addresses.take(address))
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
