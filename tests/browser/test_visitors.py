"""What the visitors of the other tests rely on: a page that was used before is like a new one."""

from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Page

from tests.helpers.visitors import forget

KEEP = """
async () => {
  localStorage.kept = sessionStorage.kept = "kept";
  document.cookie = "kept=kept";
  await new Promise((done) => (indexedDB.open("kept").onsuccess = done));
}
"""
KEPT = """
async () => [
  localStorage.kept, sessionStorage.kept, document.cookie,
  (await indexedDB.databases()).map(({ name }) => name),
]
"""


class Answers(BaseHTTPRequestHandler):
    """A page with a script that may be kept in the cache, and the paths that were asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        is_page = self.path == "/"
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if is_page else "text/javascript")
        self.send_header("Cache-Control", "no-cache" if is_page else "public, max-age=9999")
        self.end_headers()
        self.wfile.write(b"<!doctype html><script src=/script.js></script>" if is_page else b"")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def sites() -> Iterator[list[ThreadingHTTPServer]]:
    """Two sites, as a browser tells them apart: by their ports."""
    with ExitStack() as stack:
        servers = []
        for _ in range(2):
            handler = type("Handler", (Answers,), {"asked": []})
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            servers.append(server)
        yield servers


def test_a_visitor_is_forgotten_on_every_site_but_not_what_is_in_the_cache(
    own_page: Page, sites: list[ThreadingHTTPServer]
):
    addresses = [f"http://127.0.0.1:{server.server_port}/" for server in sites]
    for address in addresses:
        own_page.goto(address)
        own_page.evaluate(KEEP)
    for address in addresses:
        own_page.goto(address)
        assert own_page.evaluate(KEPT) == ["kept", "kept", "kept=kept", ["kept"]]
    own_page.goto("about:blank")
    forget(own_page)
    for address, server in zip(addresses, sites, strict=True):
        own_page.goto(address)
        assert own_page.evaluate(KEPT) == [None, None, "", []]
        asked = server.RequestHandlerClass.asked  # type: ignore[attr-defined]
        assert asked.count("/script.js") == 1 < asked.count("/")
