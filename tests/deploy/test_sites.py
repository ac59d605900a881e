"""Test several sites behind one address: sticky sessions, restarts, and limits."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import psutil
import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from benchmarks.browser import free_port
from deploy import sites
from deploy.processes import Processes
from deploy.proxy.program import COOKIE, configuration, haproxy
from serving import cores, default_models, memory
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-tests"
GB = 1_000_000_000


@pytest.mark.parametrize(
    ("n_cores", "n_bytes", "n_sites"),
    [(4, 16 * GB, 4), (4, 6 * GB, 2), (4, 2 * GB, 1), (1, 16 * GB, 1), (128, 999 * GB, 64)],
)
def test_one_site_per_core_within_memory(n_cores, n_bytes, n_sites, monkeypatch):
    monkeypatch.delenv(sites.VARIABLE, raising=False)
    assert sites.site_count(n_cores, n_bytes) == n_sites
    monkeypatch.setenv(sites.VARIABLE, "3")
    assert sites.site_count(n_cores, n_bytes) == 3


def test_sites_share_cores_and_memory(monkeypatch):
    monkeypatch.delenv(sites.HEAPS_VARIABLE, raising=False)
    monkeypatch.delenv(default_models.VARIABLE, raising=False)
    share = sites.environment(2, 6, 9 * GB)
    assert share.pop(default_models.VARIABLE)
    assert share == {
        cores.VARIABLE: "3",
        memory.VARIABLE: "4.500",
        sites.HEAPS_VARIABLE: "2",
    }
    assert sites.environment(3, 2, 9 * GB)[cores.VARIABLE] == "1"  # more sites than cores
    monkeypatch.setenv(sites.HEAPS_VARIABLE, "6")
    assert sites.environment(2, 6, 9 * GB)[sites.HEAPS_VARIABLE] == "6"  # the configured value


@pytest.mark.parametrize(
    ("address", "port"),
    [("192.0.2.1", 8501), ("no.such.host.invalid", 8501), ("127.0.0.1", 70_000)],
)
def test_error_names_an_address_of_another_machine(address: str, port: int):
    with pytest.raises(SystemExit, match=str(port)):
        sites.check_address(address, port)


def test_error_names_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        with pytest.raises(SystemExit, match=str(port)):
            sites.check_address("127.0.0.1", port)
    sites.check_address("127.0.0.1", port)


@pytest.mark.parametrize(("name", "n_starts"), [("site 1", 5), ("proxy", 0)])
def test_repeated_crashes_stop_the_restarts(name, n_starts):
    now = time.monotonic()
    starts = deque([(now - 61, name)])  # too old to count
    starts.extend((now, "site 2") for _ in range(sites.MAX_STARTS_PER_MINUTE))  # don't count
    programs = Processes()
    programs.start(name, [sys.executable, "-c", "raise SystemExit(7)"])
    for _ in range(n_starts):
        wait_until(lambda: bool(programs.exited()))
        sites.supervise(programs, starts)
    wait_until(lambda: bool(programs.exited()))
    with pytest.raises(RuntimeError, match=f"{name}.*7"):
        sites.supervise(programs, starts)


@pytest.fixture(scope="module")
def program() -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address of two sites and the program that started them."""
    port = free_port()
    environment = {
        sites.VARIABLE: "2",
        "ATTENTION_LAB_WARMUP": "off",  # no page is opened during warm-up
        "ATTENTION_LAB_METRICS_TOKEN": TOKEN,
        memory.VARIABLE: "5.4",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "deploy.sites", f"--port={port}"]
    started = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
    address = f"http://127.0.0.1:{port}"
    try:
        for number in ("1", "2"):
            wait_until(lambda number=number: is_available(address, number))
        yield address, psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(60)


def is_available(address: str, number: str) -> bool:
    """Check that the proxy considers a site available."""
    with contextlib.suppress(httpx2.HTTPError):
        answer = httpx2.get(f"{address}/readyz", cookies={COOKIE: f"site-{number}"})
        return answer.status_code == 200 and COOKIE not in answer.cookies
    return False


def process_of(program: psutil.Process, number: int) -> psutil.Process:
    """Return a site's process by its port. The program's own port comes first."""
    [port] = [int(word.partition("=")[2]) for word in program.cmdline() if "--port=" in word]
    ending = f"--server.port={port + number}"
    [process] = [child for child in program.children() if ending in child.cmdline()]
    return process


def test_sticky_sessions(program):
    address, _ = program
    first = httpx2.get(address).cookies[COOKIE]
    stream = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    cookie = {"Cookie": f"{COOKIE}={first}"}
    with connect(stream, additional_headers=cookie, origin=Origin(address)):
        # The proxy sends new visitors to the site with fewer connections, but may count one late.
        wait_until(lambda: httpx2.get(address).cookies[COOKIE] != first)
    for _ in range(5):
        # the cookie isn't replaced
        assert COOKIE not in httpx2.get(address, cookies={COOKIE: first}).cookies


@pytest.mark.parametrize(
    ("header", "body", "status"),
    [
        ("Content-Length: 100000", b"x" * 20_000, b"413"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n", b"411"),
    ],
)
def test_large_body_is_rejected_before_it_arrives(program, header: str, body: bytes, status: bytes):
    address, _ = program
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as visitor:
        head = f"POST /_stcore/health HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n"
        visitor.sendall(head.encode() + body)
        assert visitor.recv(1000).startswith(b"HTTP/1.1 " + status)


def test_metrics_of_each_site_need_the_token(program):
    address, started = program
    assert httpx2.get(f"{address}/metrics?site=1").status_code == 404
    begun = {}
    for number in (1, 2):
        answer = httpx2.get(
            f"{address}/metrics?site={number}", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        line = next(x for x in answer.text.splitlines() if x.startswith("process_start_time"))
        begun[number] = float(line.split()[1])
    for number, seconds in begun.items():
        assert seconds == pytest.approx(process_of(started, number).create_time(), abs=0.02)


def test_killed_site_restarts_and_its_visitors_move(program):
    address, started = program
    process_of(started, 2).kill()
    kept = {COOKIE: "site-2"}
    answer = httpx2.get(f"{address}/healthz", cookies=kept, timeout=30)
    assert (answer.status_code, answer.text) == (200, "ok")  # the other site responds immediately
    wait_until(lambda: is_available(address, "2"))


class NotReady(BaseHTTPRequestHandler):
    """A site that is alive but not ready for visitors."""

    def do_GET(self) -> None:
        is_alive = self.path == "/healthz"
        self.send_response(200 if is_alive else 503)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok" if is_alive else b"no")

    def log_message(self, *_: object) -> None:
        """Don't log."""


def test_liveness_while_not_ready(tmp_path: Path):
    proxy = haproxy()
    assert proxy is not None
    with ThreadingHTTPServer(("127.0.0.1", 0), NotReady) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        file, port = tmp_path / "haproxy.cfg", free_port()
        file.write_text(configuration([site.server_port] * 2), encoding="utf-8")
        started = subprocess.Popen([proxy, "-f", str(file)], env={"BIND": f"127.0.0.1:{port}"})
        try:
            wait_until(lambda: "No server is available" in fetch(port, "/heads"))
            assert fetch(port, "/healthz") == "ok"
        finally:
            started.terminate()
            started.wait(60)
            site.shutdown()


@pytest.mark.parametrize(
    ("limit", "are_kept_open"),
    [("sc_conn_cur(0) gt 1000", True), ("sc_conn_rate(0) gt 3000", False)],
)
def test_connections_per_address(limit: str, are_kept_open: bool, tmp_path: Path):
    proxy, port, file = haproxy(), free_port(), tmp_path / "haproxy.cfg"
    assert proxy is not None
    text = configuration([free_port()])
    assert limit in text
    file.write_text(text.replace(limit, limit.partition(" gt ")[0] + " gt 3"), encoding="utf-8")
    started = subprocess.Popen([proxy, "-f", str(file)], env={"BIND": f"127.0.0.1:{port}"})
    try:
        wait_until(lambda: open_connection(port, "127.0.0.9") is not None)
        kept = []
        for _ in range(3):
            connection = open_connection(port, "127.0.0.2")
            assert connection is not None
            if are_kept_open:
                kept.append(connection)
            else:
                connection.close()
        assert open_connection(port, "127.0.0.2") is None
        assert open_connection(port, "127.0.0.3") is not None
    finally:
        started.terminate()
        started.wait(60)


def open_connection(port: int, address: str) -> socket.socket | None:
    """Connect from another address of this machine; return None if the proxy closes it."""
    connection = socket.socket()
    connection.settimeout(60)
    connection.bind((address, 0))
    with contextlib.suppress(OSError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        if connection.recv(1000):
            return connection
    connection.close()
    return None


def fetch(port: int, path: str) -> str:
    """Return the proxy's response, or an empty string until it listens."""
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"http://127.0.0.1:{port}{path}").text
    return ""
