"""Test access to /metrics, and what it counts."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from tests.helpers.metrics import counter_value
from web import metrics_endpoint

PORT = 4321
SITE = f"http://127.0.0.1:{PORT}"


PROXY_HEADERS = (
    "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Port", "Via", "CF-Connecting-IP",
    "True-Client-IP", "X-Client-IP", "Fly-Client-IP", "X-Envoy-External-Address",
)  # fmt: skip


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(await socket.receive_text())
    await socket.close()


def failing_page(request: Request) -> Response:
    raise ZeroDivisionError(request.query_params["text"])


def page(_: Request) -> Response:
    return PlainTextResponse("a page")


APP = Starlette(
    routes=[
        metrics_endpoint.route(),
        WebSocketRoute("/stream", echo),
        Route("/fails", failing_page),
        Route("/page", page),
        Route("/_stcore/metrics", page),
    ],
    middleware=[Middleware(metrics_endpoint.RequestMetrics)],
)


def client(address: str = "127.0.0.1", base: str = SITE) -> TestClient:
    """Return a client that connects from this address."""
    return TestClient(APP, base, raise_server_exceptions=False, client=(address, PORT))


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(metrics_endpoint.TOKEN_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("address", "base", "headers"),
    [
        ("203.0.113.9", SITE, {}),
        ("203.0.113.9", SITE, {"x-forwarded-for": "127.0.0.1"}),
        # uvicorn replaces the client's address with the one in the proxy's header
        ("127.0.0.1", SITE, {"x-forwarded-for": "127.0.0.1"}),
        ("127.0.0.1", SITE, {"forwarded": "for=127.0.0.1"}),
        *(("127.0.0.1", SITE, {name: "127.0.0.1"}) for name in PROXY_HEADERS),
        # a local proxy that doesn't identify itself, and DNS rebinding
        ("127.0.0.1", "http://lab.example.org", {}),
        ("127.0.0.1", SITE, {"host": "[::1"}),
        ("203.0.113.9", SITE, {"authorization": "Bearer "}),  # no token is set, so none is valid
    ],
)
def test_metrics_are_hidden_without_token(address, base, headers):
    answer = client(address, base).get("/metrics", headers=headers)
    assert (answer.status_code, answer.text) == (404, "Not Found")


@pytest.mark.parametrize(("version", "code"), [("1.0", 404), ("1.1", 200)])
def test_http_1_0_request_counts_as_proxied(version: str, code: int):
    """By default, nginx's `proxy_pass` sends HTTP/1.0 with this machine's name and address."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await APP({**scope, "http_version": version}, receive, send)

    answer = TestClient(app, SITE, client=("127.0.0.1", PORT)).get("/metrics")
    assert answer.status_code == code


@pytest.mark.parametrize(
    ("address", "base"),
    [("127.0.0.1", SITE), ("::ffff:127.0.0.1", "http://localhost")],
)
def test_local_requests_can_read_metrics(address, base):
    answer = client(address, base).get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "process_resident_memory_bytes" in answer.text


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Bearer s3cret-é", 200),
        ("Bearer s3cret", 404),
        ("Basic s3cret-é", 404),
        ("", 404),
    ],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "203.0.113.9"])
def test_metrics_need_the_token(
    monkeypatch: pytest.MonkeyPatch, header: str, code: int, address: str
):
    monkeypatch.setenv(metrics_endpoint.TOKEN_VARIABLE, "s3cret-é\n")  # like a line of a file
    headers = {"authorization": header.encode()}
    assert client(address).get("/metrics", headers=headers).status_code == code


def test_visits_and_request_errors_are_counted():
    def visits() -> tuple[float, float]:
        return counter_value("visits_total"), counter_value("open_visits")

    errors = {"kind": "ZeroDivisionError", "ended": "request"}
    total, before = visits()[0], counter_value("errors_total", **errors)
    with client().websocket_connect("/stream") as socket:
        assert visits() == (total + 1, 1)
        socket.send_text("hello")
        assert socket.receive_text() == "hello"
    assert client().get("/page").text == "a page"
    assert visits() == (total + 1, 0)
    assert client().get("/fails?text=secret").status_code == 500
    assert counter_value("errors_total", **errors) == before + 1


def test_streamlits_own_metrics_are_hidden_too():
    assert client().get("/_stcore/metrics").text == "a page"
    assert client("203.0.113.9").get("/_stcore/metrics").status_code == 404
    assert client(base="http://lab.example.org").get("/_stcore/metrics").status_code == 404
