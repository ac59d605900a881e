"""Test that unknown host names are rejected, for pages and for WebSockets."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from web.hosts import AllowedHosts


def page(_: Request) -> Response:
    return PlainTextResponse("a page")


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def client(*hosts: str) -> TestClient:
    routes = [WebSocketRoute("/stream", stream), Route("/{path:path}", page)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(AllowedHosts, hosts)]))


HOSTS = {
    "lab.example.org": True,
    "LAB.example.org:8501": True,
    "a.school.example": True,
    "[::1]:8501": True,
    "school.example": False,
    "evil.example": False,
    "lab.example.org.evil.example": False,
    "lab.example.org@evil.example": False,
    "evil.example:lab.example.org": False,
    "": False,
}


@pytest.mark.parametrize("host", HOSTS)
def test_only_listed_hosts_are_allowed(host: str):
    site = client("lab.example.org", "*.school.example", "[::1]")
    foreign = {"host": host, "origin": f"http://{host}"}
    response = site.get("/page", headers=foreign)
    assert response.status_code == (200 if HOSTS[host] else 400)
    assert "evil" not in response.text
    if HOSTS[host]:
        with site.websocket_connect("/stream", headers={"host": host}) as socket:
            assert socket.receive_text() == "hello"
    else:
        assert rejection_status(site, foreign) == 400


def rejection_status(site: TestClient, headers: dict[str, str]) -> int:
    """Return the status code of the response that rejects a WebSocket."""
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        site.websocket_connect("/stream", headers=headers),
    ):
        pass
    return refused.value.status_code


@pytest.mark.parametrize("hosts", [(), ("testserver",)])
def test_malformed_origin_is_rejected(hosts: tuple[str, ...]):
    assert rejection_status(client(*hosts), {"origin": "http://[::1"}) == 403


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/_stcore/health"])
def test_probes_may_use_an_ip_address(path: str):
    assert client("lab.example.org").get(path, headers={"host": "10.0.0.7"}).text == "a page"
