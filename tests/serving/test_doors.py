"""Names of the site that are known and those that are not, and who may frame it."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from serving import doors


def page(_: Request) -> Response:
    return PlainTextResponse("a page")


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def client(*names: str) -> TestClient:
    routes = [
        Route("/page", page),
        *(Route(path, page) for path in ("/healthz", "/metrics")),
        WebSocketRoute("/stream", stream),
    ]
    guarded = Middleware(doors.Doors, names, "'self' https://moodle.example.org")
    return TestClient(Starlette(routes=routes, middleware=[guarded]))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("lab.example.org", 200),
        ("LAB.example.org:8501", 200),
        ("a.school.example", 200),
        ("[::1]:8501", 200),
        ("school.example", 421),
        ("evil.example", 421),
        ("lab.example.org.evil.example", 421),
        ("lab.example.org@evil.example", 421),
        ("evil.example:lab.example.org", 421),
        ("", 421),
    ],
)
def test_a_name_is_known_or_turned_away(host: str, status: int):
    site = client("lab.example.org", "*.school.example", "[::1]")
    answer = site.get("/page", headers={"host": host})
    assert answer.status_code == status
    if status == 421:
        assert doors.HOSTS_VARIABLE in answer.text
        assert "evil" not in answer.text


def test_a_websocket_of_a_foreign_name_with_an_origin_of_the_same_name():
    site = client("lab.example.org")
    foreign = {"host": "evil.example", "origin": "http://evil.example"}
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        site.websocket_connect("/stream", headers=foreign),
    ):
        pass
    assert refused.value.status_code == 421
    with site.websocket_connect("/stream", headers={"host": "lab.example.org"}) as socket:
        assert socket.receive_text() == "hello"


def test_an_origin_that_cannot_be_read_is_turned_away():
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client().websocket_connect("/stream", headers={"origin": "http://[::1"}),
    ):
        pass
    assert refused.value.status_code == 403


@pytest.mark.parametrize("path", ["/healthz", "/metrics"])
def test_probes_ask_by_the_address_of_the_machine(path: str):
    assert client("lab.example.org").get(path, headers={"host": "10.0.0.7"}).text == "a page"


def test_without_names_everybody_is_let_in_and_told_who_may_frame_the_site():
    answer = client().get("/page", headers={"host": "any.example"})
    assert answer.status_code == 200
    policy = "frame-ancestors 'self' https://moodle.example.org"
    assert answer.headers["content-security-policy"] == policy


def test_what_the_variables_hold(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(doors.HOSTS_VARIABLE, raising=False)
    monkeypatch.delenv(doors.EMBED_VARIABLE, raising=False)
    assert (doors.hosts(), doors.frame_ancestors()) == ((), "'self'")
    monkeypatch.setenv(doors.HOSTS_VARIABLE, " Lab.example.org, *.school.example ")
    monkeypatch.setenv(doors.EMBED_VARIABLE, "https://moodle.example.org http://x.example:8080")
    assert doors.hosts() == ("lab.example.org", "*.school.example")
    expected = "'self' https://moodle.example.org http://x.example:8080"
    assert doors.frame_ancestors() == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (doors.HOSTS_VARIABLE, "https://lab.example.org"),
        (doors.HOSTS_VARIABLE, "*"),
        (doors.HOSTS_VARIABLE, "lab.example.org:8501"),
        (doors.EMBED_VARIABLE, "moodle.example.org"),
        (doors.EMBED_VARIABLE, "https://a.example;script-src"),
        (doors.EMBED_VARIABLE, "*"),
        (doors.EMBED_VARIABLE, "https://a.example/path"),
    ],
)
def test_what_is_no_name_is_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(variable, value)
    read = doors.hosts if variable == doors.HOSTS_VARIABLE else doors.frame_ancestors
    with pytest.raises(ValueError, match=variable):
        read()
