"""Visitors may use of Streamlit's protocol what pages need; the rest is left out or turned away."""

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

from serving import protocol
from serving.limits import BURST_OF_FILES, FILES_A_SECOND
from serving.pace import OfAddresses
from tests.helpers.coroutines import done

MAX_BYTES = 200
ended: list[int] = []


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_bytes(await socket.receive_bytes())
    except WebSocketDisconnect as disconnect:
        ended.append(disconnect.code)
        await socket.send_bytes(b"too late")  # as a page may that still runs


async def taken(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())} bytes")


@pytest.fixture
def site() -> TestClient:
    routes = [
        WebSocketRoute("/_stcore/stream", echo),
        Route("/{path:path}", taken, methods=["GET", "PUT", "DELETE"]),
    ]
    needed = Middleware(protocol.Needed, BackMsg, max_bytes=MAX_BYTES)
    ended.clear()
    return TestClient(Starlette(routes=routes, middleware=[needed]))


def message(kind: str) -> bytes:
    """A message of this kind, with nothing in it; a file is one that is made on a click."""
    asked = BackMsg()
    if kind == protocol.FILE:
        asked.backend_operation_request.deferred_file.file_id = "a file"
        return asked.SerializeToString()
    field = BackMsg.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is None:
        setattr(asked, kind, True)
    else:
        getattr(asked, kind).SetInParent()
    return asked.SerializeToString()


def test_kinds_that_pages_need_pass_and_all_others_are_left_out(site: TestClient):
    kinds = list(BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields)
    assert {field.name for field in kinds} > protocol.KINDS
    with site.websocket_connect("/_stcore/stream") as visitor:
        for field in kinds:
            visitor.send_bytes(message(field.name))
        visitor.send_bytes(b"")
        visitor.send_bytes(b"\xff\xff not of Streamlit")
        for payload in ("install_skills", "dismiss_skills_nudge", "dataframe_chunk"):
            other = BackMsg()
            getattr(other.backend_operation_request, payload).SetInParent()
            visitor.send_bytes(other.SerializeToString())
        visitor.send_text("nor is text")
        last = BackMsg()
        last.rerun_script.page_name = "the last one"
        visitor.send_bytes(last.SerializeToString())
        answers = [visitor.receive_bytes() for _ in range(len(protocol.KINDS) + 1)]
    passed = {BackMsg.FromString(answer).WhichOneof("type") for answer in answers[:-1]}
    assert passed == protocol.KINDS
    assert answers[-1] == last.SerializeToString()


def test_a_message_that_is_too_long_ends_the_connection(site: TestClient):
    asked = BackMsg()
    asked.rerun_script.query_string = "x" * 100
    with site.websocket_connect("/_stcore/stream") as visitor:
        visitor.send_bytes(asked.SerializeToString())
        assert visitor.receive_bytes() == asked.SerializeToString()
        asked.rerun_script.query_string = "x" * MAX_BYTES
        visitor.send_bytes(asked.SerializeToString())
        with pytest.raises(WebSocketDisconnect) as closed:
            visitor.receive_bytes()
    assert closed.value.code == 1009
    assert ended == [1009]


def test_whoever_asks_for_many_files_waits_between_them():
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    needed = Middleware(protocol.Needed, BackMsg, wait=wait)
    routes = [WebSocketRoute("/_stcore/stream", echo)]
    client = TestClient(Starlette(routes=routes, middleware=[needed]))
    with client.websocket_connect("/_stcore/stream") as visitor:
        for _ in range(BURST_OF_FILES):
            visitor.send_bytes(message(protocol.FILE))
            visitor.receive_bytes()
        assert waited == []
        for kind in (protocol.FILE, "rerun_script", protocol.FILE):
            visitor.send_bytes(message(kind))
            visitor.receive_bytes()
    # the clock runs meanwhile, by less than a second
    assert waited == pytest.approx([1 / FILES_A_SECOND, 2 / FILES_A_SECOND], abs=1)


def test_files_of_an_address_are_counted_over_its_connections():
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    of_addresses = OfAddresses(4, 3, clock=lambda: 0.0)
    needed = Middleware(protocol.Needed, BackMsg, wait=wait, of_addresses=of_addresses)
    routes = [WebSocketRoute("/_stcore/stream", echo)]
    client = TestClient(Starlette(routes=routes, middleware=[needed]))
    for _ in range(5):
        with client.websocket_connect("/_stcore/stream") as visitor:
            visitor.send_bytes(message(protocol.FILE))
            visitor.receive_bytes()
    assert waited == [0.25, 0.5]


def test_whoever_does_not_read_is_not_listened_to():
    """The first answer is not read: the second message waits for that, or for the end."""
    taken: list[str] = []

    async def visit() -> None:
        asked, is_read = asyncio.Queue[dict[str, object]](), asyncio.Event()

        async def send(_: object) -> None:
            await is_read.wait()

        async def page(_: Scope, receive: Receive, send: Send) -> None:
            answers = set()
            while (await receive())["type"] == "websocket.receive":
                taken.append("message")
                answers.add(asyncio.create_task(send({"type": "websocket.send", "bytes": b""})))
                await asyncio.sleep(0)
            await asyncio.gather(*answers)

        visitor = protocol.Needed(page, BackMsg)({"type": "websocket"}, asked.get, send)
        site = asyncio.create_task(visitor)
        for _ in range(2):
            asked.put_nowait({"type": "websocket.receive", "bytes": message("rerun_script")})
        for _ in range(20):  # rounds of the loop
            await asyncio.sleep(0)
        assert len(taken) == 1
        is_read.set()
        asked.put_nowait({"type": "websocket.disconnect"})
        await asyncio.wait_for(site, 60)
        assert len(taken) == 2

    done(visit())


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_no_file_is_taken(method: str, site: TestClient):
    answer = site.request(method, "/_stcore/upload_file/session/file", content=b"x" * 1_000)
    assert answer.status_code == 403
    assert "no files" in answer.text
    assert site.put("/elsewhere", content=b"x" * 10).text == "10 bytes"
