"""A real server and a real browser. Tests steer by what the page shows, not by waiting a while."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    expect,
)

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30
PHONE: ViewportSize = {"width": 390, "height": 844}
PAINT_SECONDS = 60  # for whatever is no claim about speed: the machine may be busy

expect.set_options(timeout=PAINT_SECONDS * 1000)

# Chromium as root in a container; nothing of its own goes to the network
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    """A Chromium on the PATH; None leaves the choice to Playwright's own download."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A server process and its address."""

    def __init__(self, log: Path, script: str = "app.py", **environment: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "streamlit", "run", script,
                f"--server.port={port}", "--server.address=127.0.0.1",
                "--server.fileWatcherType=none",
            ],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait_until_it_listens(self) -> None:
        """Return when the health route answers; fail if the process has ended."""
        for _ in range(START_SECONDS * 10):
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5):
                    return
            except OSError:
                try:
                    code = self._process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                pytest.fail(f"the server ended with {code}: {Path(self._log.name).read_text()}")
        pytest.fail(f"no answer in {START_SECONDS} s: {Path(self._log.name).read_text()}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._log.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests that do not need a fresh one."""
    server = Site(tmp_path_factory.mktemp("server") / "log.txt")
    server.wait_until_it_listens()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for most tests: it keeps Streamlit's scripts as it compiled them."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    yield context
    context.close()


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """A new visitor. Uncaught errors in the page fail the test."""
    page = profile.new_page()
    page.set_default_timeout(PAINT_SECONDS * 1000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    for opened in profile.pages:
        opened.close()
    # nothing that the site stored, and nothing it was allowed, is left to the next visitor
    profile.set_storage_state({"cookies": [], "origins": []})
    profile.clear_permissions()
    assert not errors


@pytest.fixture
def phone(page: Page) -> Page:
    """A new visitor with a window as wide as a phone's."""
    page.set_viewport_size(PHONE)
    return page
