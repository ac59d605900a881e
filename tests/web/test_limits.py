"""Test limits per visitor: message rate, size, and connections."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg

from serving import limits
from tests.helpers.coroutines import run_coroutine
from web.limits import Limits, RateLimiter

HEARTBEAT = BackMsg(app_heartbeat=True).SerializeToString()
_FILE = BackMsg()
_FILE.backend_operation_request.deferred_file.file_id = "a file"
FILE = _FILE.SerializeToString()


class SleepingClock:
    """A clock that only advances during sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> SleepingClock:
    return SleepingClock()


def app(clock: SleepingClock) -> Starlette:
    """A server that echoes messages, within the limits."""
    ended: list[int] = []

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_bytes(await socket.receive_bytes())
        except WebSocketDisconnect as disconnect:
            ended.append(disconnect.code)
            await socket.send_bytes(b"too late")  # like a page that's still running

    async def upload(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{len(await request.body())} bytes")

    routes = [
        WebSocketRoute("/_stcore/stream", echo),
        Route("/ended", lambda _: PlainTextResponse(str(ended))),
        Route("/{path:path}", upload, methods=["PUT", "DELETE"]),
    ]
    middleware = Middleware(Limits, clock=clock, sleep=clock.sleep)
    return Starlette(routes=routes, middleware=[middleware])


def connect(site: Starlette, address: str = "192.0.2.1"):
    return TestClient(site, client=(address, 5)).websocket_connect("/_stcore/stream")


def is_echoed(socket, message: bytes = HEARTBEAT) -> bool:
    socket.send_bytes(message)
    return socket.receive_bytes() == message


@pytest.mark.parametrize(
    ("message", "per_second", "burst"),
    [
        (HEARTBEAT, limits.MESSAGES_PER_SECOND, limits.MESSAGE_BURST),
        (FILE, limits.FILES_PER_SECOND, limits.FILE_BURST),
    ],
)
def test_message_flood_is_slowed_down(
    message: bytes, per_second: float, burst: int, clock: SleepingClock
):
    site, n_messages = app(clock), 2_000
    with connect(site) as storm:
        assert all(is_echoed(storm, message) for _ in range(n_messages))
        assert clock.now == pytest.approx((n_messages - burst) / per_second)
        before = clock.now
        with connect(site, "192.0.2.2") as other:
            assert is_echoed(other)
            assert clock.now == before


@pytest.mark.parametrize(
    ("message", "per_second"),
    [
        (HEARTBEAT, limits.ADDRESS_MESSAGES_PER_SECOND),
        (FILE, limits.ADDRESS_FILES_PER_SECOND),
    ],
)
def test_new_connections_do_not_raise_the_rate_of_an_address(
    message: bytes, per_second: float, clock: SleepingClock, monkeypatch: pytest.MonkeyPatch
):
    burst = 30
    for name in ("ADDRESS_MESSAGE_BURST", "ADDRESS_FILE_BURST"):
        monkeypatch.setattr(limits, name, burst)
    site = app(clock)
    for _ in range(20):
        with connect(site) as socket:
            assert all(is_echoed(socket, message) for _ in range(4))
    assert clock.now == pytest.approx((80 - burst) / per_second)


def test_open_connections_per_address_are_limited(
    clock: SleepingClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "MAX_SESSIONS_PER_ADDRESS", 2)
    site = app(clock)
    with connect(site):
        with connect(site):
            with pytest.raises(WebSocketDisconnect) as refused, connect(site):
                pass
            assert refused.value.code == 1013
            with connect(site, "192.0.2.2") as other:
                assert is_echoed(other)
        with connect(site) as freed:
            assert is_echoed(freed)


def test_oversized_message_closes_the_connection(clock: SleepingClock):
    site, message = app(clock), BackMsg()
    message.rerun_script.query_string = "x" * (limits.MAX_MESSAGE_BYTES - 100)
    with connect(site) as visitor:
        assert is_echoed(visitor, message.SerializeToString())
        visitor.send_bytes(b"x" * (limits.MAX_MESSAGE_BYTES + 1))
        with pytest.raises(WebSocketDisconnect) as closed:
            visitor.receive_bytes()
    assert closed.value.code == 1009
    assert TestClient(site).get("/ended").text == "[1009]"


def test_server_stops_reading_from_a_client_that_does_not_read():
    """The first response isn't read: the second message waits for it, or for the end."""
    received: list[str] = []

    async def visit() -> None:
        sent, is_read = asyncio.Queue[dict[str, object]](), asyncio.Event()

        async def send(_: object) -> None:
            await is_read.wait()

        async def page(_: Scope, receive: Receive, send: Send) -> None:
            answers = set()
            while (await receive())["type"] == "websocket.receive":
                received.append("message")
                answers.add(asyncio.create_task(send({"type": "websocket.send", "bytes": b""})))
                await asyncio.sleep(0)
            await asyncio.gather(*answers)

        scope = {"type": "websocket", "headers": []}
        site = asyncio.create_task(Limits(page)(scope, sent.get, send))
        for _ in range(2):
            sent.put_nowait({"type": "websocket.receive", "bytes": HEARTBEAT})
        for _ in range(20):  # event loop iterations
            await asyncio.sleep(0)
        assert len(received) == 1
        is_read.set()
        sent.put_nowait({"type": "websocket.disconnect"})
        await asyncio.wait_for(site, 60)
        assert len(received) == 2

    run_coroutine(visit())


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_uploads_are_rejected(method: str, clock: SleepingClock):
    site = TestClient(app(clock))
    response = site.request(method, "/_stcore/upload_file/session/file", content=b"x" * 1_000)
    assert response.status_code == 403


def test_full_buckets_are_forgotten(clock: SleepingClock):
    limiter = RateLimiter(1, 2, clock)
    for number in range(1_000):
        limiter.delay(number)
        clock.now += 0.5
    assert len(limiter) == 2
    assert [limiter.delay(999) for _ in range(3)] == pytest.approx([0, 0.5, 1.5])
