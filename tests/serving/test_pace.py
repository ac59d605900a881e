"""A storm of messages is answered at the pace of a visitor, and an address has so many pages."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from serving import pace


class Clock:
    """Seconds that pass only when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        self.now += seconds


def test_an_allowance_is_a_burst_and_then_so_many_a_second():
    clock = Clock()
    allowance = pace.Allowance(4, 3, clock)
    assert [allowance.take() for _ in range(5)] == [0, 0, 0, 0.25, 0.5]
    clock.now = 0.5  # as long as the last one has to wait
    assert allowance.take() == 0.25
    clock.now = 60
    assert [allowance.take() for _ in range(4)] == [0, 0, 0, 0.25]  # a burst, however long ago


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_addresses_of_one_network_of_version_6_count_as_one(address: str, network: str):
    assert pace.network(address) == network


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        pass


def test_a_storm_takes_as_long_as_a_visitor_would(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(pace.Allowance.__init__, "__defaults__", (clock,))
    paced = Middleware(pace.Paced, a_second=10, burst=20, wait=clock.wait)
    site = TestClient(Starlette(routes=[WebSocketRoute("/stream", echo)], middleware=[paced]))
    with site.websocket_connect("/stream") as storm:
        for number in range(2_000):
            storm.send_text(str(number))
        assert [storm.receive_text() for _ in range(2_000)] == [str(n) for n in range(2_000)]
        assert clock.now == pytest.approx((2_000 - 20) / 10)
        with site.websocket_connect("/stream") as other:  # has an allowance of its own
            before = clock.now
            other.send_text("hello")
            assert other.receive_text() == "hello"
            assert clock.now == before


def test_an_address_has_so_many_open_pages():
    app = Starlette(
        routes=[WebSocketRoute("/stream", echo)], middleware=[Middleware(pace.Paced, sessions=2)]
    )
    school, other = (TestClient(app, client=(address, 5)) for address in ("192.0.2.1", "192.0.2.2"))
    with school.websocket_connect("/stream"):
        with school.websocket_connect("/stream"):
            with pytest.raises(WebSocketDisconnect) as refused, school.websocket_connect("/stream"):
                pass
            assert refused.value.code == 1013
            with other.websocket_connect("/stream") as socket:
                socket.send_text("hello")
                assert socket.receive_text() == "hello"
        with school.websocket_connect("/stream") as socket:  # there is room again
            socket.send_text("hello")
            assert socket.receive_text() == "hello"


def test_whoever_connects_again_and_again_has_no_more_than_before():
    clock = Clock()
    of_addresses = pace.OfAddresses(5, 30, clock)
    paced = Middleware(pace.Paced, wait=clock.wait, of_addresses=of_addresses)
    site = Starlette(routes=[WebSocketRoute("/stream", echo)], middleware=[paced])
    storm, other = (TestClient(site, client=(address, 5)) for address in ("192.0.2.1", "192.0.2.2"))
    for _ in range(20):
        with storm.websocket_connect("/stream") as socket:
            for number in range(4):
                socket.send_text(str(number))
                socket.receive_text()
    assert clock.now == pytest.approx((80 - 30) / 5)
    before = clock.now
    with other.websocket_connect("/stream") as socket:
        socket.send_text("hello")
        socket.receive_text()
    assert clock.now == before


def test_addresses_that_have_been_quiet_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pace, "_FEW_ADDRESSES", 3)
    clock = Clock()
    of_addresses = pace.OfAddresses(1, 2, clock)
    for number in range(3):
        of_addresses.take(f"192.0.2.{number}")
    clock.now = 0.5
    assert [of_addresses.take("192.0.2.7") for _ in range(3)] == [0, 0, 1]
    assert len(of_addresses) == 4  # a message of each is still missing
    clock.now = 60
    for number in range(10, 30):
        of_addresses.take(f"192.0.2.{number}")
        clock.now += 2
    assert len(of_addresses) <= 9
