"""A small model hub on the loopback interface, for download tests."""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER_COMMIT = "fedcba9876543210fedcba9876543210fedcba98"


class FakeHub:
    """Serves repositories (id -> file name -> bytes) under the few URLs that downloads use."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        # pushed to main right after the first request for it
        self.pushed: dict[str, dict[str, bytes]] = {}
        self.looked_at: set[str] = set()
        self.requested: list[str] = []
        self.slow_file = ""  # sent in small pieces until the server is closed
        self.silent = False  # accept requests about models but never respond
        self.garbage: bytes | None = None  # returned instead of every model's metadata
        self.closing = threading.Event()
        self.half_sent = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self, with_body=True)

            def do_HEAD(self) -> None:
                outer.answer(self, with_body=False)

            def log_message(self, *arguments: Any) -> None:
                """Don't log."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        # how often it checks for shutdown
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler, *, with_body: bool) -> None:
        path = request.path.split("?")[0]
        self.requested.append(path)
        if self.silent and path.startswith("/api/"):
            self.half_sent.set()
            self.closing.wait(30)
            return None
        if self.garbage is not None and path.startswith("/api/"):
            return self.send(request, 200, self.garbage, {}, with_body)
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/]+)", path):
            commit, files = self.at(match[1], match[3])
            if files is None:
                return self.send(request, 404, b"{}", {"X-Error-Code": "RepoNotFound"}, with_body)
            listing: Any
            if match[2] == "tree":
                listing = [
                    {"type": "file", "path": n, "size": len(b), "oid": hashlib.sha1(b).hexdigest()}
                    for n, b in files.items()
                ]
            else:
                siblings = [{"rfilename": n, "size": len(b)} for n, b in files.items()]
                listing = {"id": match[1], "modelId": match[1], "sha": commit, "siblings": siblings}
                self.looked_at.add(match[1])
            body = json.dumps(listing).encode()
            return self.send(request, 200, body, {"Content-Type": "application/json"}, with_body)
        if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            commit, files = self.at(match[1], match[2])
            content = (files or {}).get(match[3])
            if content is not None:
                tag = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit}
                slow = match[3] == self.slow_file
                return self.send(request, 200, content, tag, with_body, slow=slow)
            return self.send(request, 404, b"", {"X-Error-Code": "EntryNotFound"}, with_body)
        return self.send(request, 200, b"", {}, with_body)

    def at(self, hub_id: str, revision: str) -> tuple[str, dict[str, bytes] | None]:
        """Return the commit that a revision currently points to, and its files."""
        change = hub_id in self.pushed and hub_id in self.looked_at
        if revision == LATER_COMMIT or (revision == "main" and change):
            return LATER_COMMIT, self.pushed.get(hub_id)
        return COMMIT, self.repositories.get(hub_id)

    def send(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        body: bytes,
        headers: dict[str, str],
        with_body: bool,
        *,
        slow: bool = False,
    ) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        if not with_body:
            return
        if slow:
            request.wfile.write(body[: len(body) // 2])
            request.wfile.flush()
            self.half_sent.set()
            self.closing.wait(30)
            return
        request.wfile.write(body)

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
