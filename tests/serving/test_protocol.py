"""Visitors may use of Streamlit's protocol what pages need; the rest is left out or turned away."""

import asyncio
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from serving import protocol
from serving.limits import BURST_OF_FILES, FILES_A_SECOND, MAX_WIDGETS
from serving.pace import OfAddresses
from tests.helpers.coroutines import done
from tests.helpers.hostile_texts import FORGED

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


def string_fields(form: Descriptor, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to each field of a message that holds text, in all kinds that pages need."""
    for field in form.fields:
        if not path and field.name not in protocol.KINDS:
            continue
        if field.message_type is not None:
            yield from string_fields(field.message_type, (*path, field.name))
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield (*path, field.name)


def with_text(path: tuple[str, ...], text: str) -> bytes:
    """A message with this text in one field, and nothing else but what has to be around it."""
    asked = BackMsg()
    if path[0] == protocol.FILE:
        asked.backend_operation_request.deferred_file.SetInParent()
    part = asked
    for name in path[:-1]:
        field = part.DESCRIPTOR.fields_by_name[name]
        part = getattr(part, name).add() if field.is_repeated else getattr(part, name)
    if part.DESCRIPTOR.fields_by_name[path[-1]].is_repeated:
        getattr(part, path[-1]).append(text)
    else:
        setattr(part, path[-1], text)
    return asked.SerializeToString()


FIELDS = list(string_fields(BackMsg.DESCRIPTOR))


def passes(content: bytes) -> bool:
    """Whether a message reaches Streamlit."""
    last = message("app_heartbeat")
    needed = Middleware(protocol.Needed, BackMsg)
    routes = [WebSocketRoute("/_stcore/stream", echo)]
    site = TestClient(Starlette(routes=routes, middleware=[needed]))
    with site.websocket_connect("/_stcore/stream") as visitor:
        visitor.send_bytes(content)
        visitor.send_bytes(last)
        return visitor.receive_bytes() != last


@pytest.mark.parametrize("path", FIELDS, ids=".".join)
@pytest.mark.parametrize("what", FORGED)
def test_an_identifier_that_is_not_plain_is_left_out(path: tuple[str, ...], what: str):
    """A text that a visitor types passes as it is; no identifier of a message does."""
    form = BackMsg.DESCRIPTOR
    for name in path[:-1]:
        form = form.fields_by_name[name].message_type
    name = form.fields_by_name[path[-1]].full_name
    assert passes(with_text(path, FORGED[what])) == (name in protocol.TEXTS)


def test_bytes_that_are_no_text_are_left_out():
    content = with_text(("rerun_script", "query_string"), "surrogate").replace(
        b"surrogate", "\udc80".encode("utf-8", "surrogatepass") + b"123456"
    )
    assert not passes(content)


PLAIN = {
    "rerun_script.fragment_id": "6f1ed002ab5595859014ebf0951522d9",
    "rerun_script.page_script_hash": "6f1ed002ab5595859014ebf0951522d9",
    "rerun_script.cached_message_hashes": "a" * 64,
    "rerun_script.context_info.timezone": "America/Argentina/Buenos_Aires",
    "rerun_script.context_info.locale": "zh-Hans-CN",
    "rerun_script.context_info.color_scheme": "dark",
    "rerun_script.context_info.url": "http://localhost:8501/heads?heads_text=%20\n",
    "rerun_script.page_name": "ünbekannt",
    "rerun_script.widget_states.widgets.id": (
        "$$STREAMLIT_INTERNAL_KEY_$$ID-bce6dd770f1dfedb959f5a1b8f8bd69e-tokens_chips_GPT-2 (BPE)"
        "__events"
    ),
    "backend_operation_request.request_id": "5a4e2f38-6f50-4a0d-9a58-3a3c0f5c8d0a",
    "backend_operation_request.session_id": "5a4e2f38-6f50-4a0d-9a58-3a3c0f5c8d0a",
    "backend_operation_request.deferred_file.file_id": "6f1ed002ab5595859014ebf0951522d9",
}


@pytest.mark.parametrize("path", PLAIN)
def test_what_a_browser_sends_passes(path: str):
    assert passes(with_text(tuple(path.split(".")), PLAIN[path]))


@pytest.mark.parametrize("scheme", ["<b>", "Dark", "light\n", "custom"])
def test_a_color_scheme_that_no_browser_has_is_left_out(scheme: str):
    path = "rerun_script", "context_info", "color_scheme"
    assert not passes(with_text(path, scheme))


@pytest.mark.parametrize("kind", [f.name for f in WidgetState.DESCRIPTOR.oneofs[0].fields])
def test_values_pass_that_widgets_of_these_pages_have(kind: str):
    asked = BackMsg()
    widget = asked.rerun_script.widget_states.widgets.add(id="$$ID-1-any")
    field = WidgetState.DESCRIPTOR.fields_by_name[kind]
    if field.message_type is not None:
        getattr(widget, kind).SetInParent()
    else:
        setattr(widget, kind, field.default_value)
    assert widget.WhichOneof("value") == kind
    unused = {"arrow_value", "bytes_value", "file_uploader_state_value", "chat_input_value"}
    assert passes(asked.SerializeToString()) == (kind not in unused)


@pytest.mark.parametrize(("n_widgets", "taken"), [(MAX_WIDGETS, True), (MAX_WIDGETS + 1, False)])
def test_a_message_holds_no_more_widgets_than_pages_have(n_widgets: int, taken: bool):
    asked = BackMsg()
    for number in range(n_widgets):
        asked.rerun_script.widget_states.widgets.add(id=f"$$ID-{number}-any", bool_value=True)
    assert passes(asked.SerializeToString()) == taken
