"""Start the site and a Chromium, for benchmarks and browser tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from prometheus_client.parser import text_string_to_metric_families

from serving.metrics import PREFIX

ROOT = Path(__file__).resolve().parents[1]


START_SECONDS = 60


# for Chromium as root in a container, without network requests of its own
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
    """Path of an installed Chromium, or None to use Playwright's download.

    Prefers the headless shell, which opens a page with a quarter less work.
    """
    names = (
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    )
    return next(filter(None, map(shutil.which, names)), None)


def free_port() -> int:
    """A free port on the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A running site; `url` has no trailing slash."""

    def __init__(self, url: str) -> None:
        self.url = url


@dataclass(frozen=True)
class Memory:
    """A site's memory: resident bytes, and bytes cached on purpose.

    The cached part consists of models and results computed for visitors (`serving.cache`), and it's
    limited. The rest would grow without bound if the site leaked memory.
    """

    resident: int
    cached: int

    @property
    def rest(self) -> int:
        """Resident bytes that aren't in a cache."""
        return self.resident - self.cached


class Server(Site):
    """A site and the process that serves it."""

    def __init__(self, log: Path, script: str = "app.py", **environment: str) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}")
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            self._command(script, port),
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def _command(self, script: str, port: int) -> list[str]:
        options = [f"--server.port={port}", "--server.address=127.0.0.1"]
        return [sys.executable, "-m", "streamlit", "run", script, *options]

    def wait_until_it_listens(self) -> None:
        """Wait until the health route responds; raise RuntimeError if the process ends."""
        for _ in range(START_SECONDS * 10):
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5):
                    return
            except OSError:
                try:
                    code = self._process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                text = Path(self._log.name).read_text()
                raise RuntimeError(f"the server ended with {code}: {text}") from None
        raise RuntimeError(f"no response in {START_SECONDS} s: {Path(self._log.name).read_text()}")

    def memory(self) -> Memory:
        """Memory of all processes that serve the site; shared pages are counted in each."""
        program = psutil.Process(self._process.pid)
        processes = [program, *program.children(recursive=True)]
        return Memory(
            resident=sum(int(process.memory_info().rss) for process in processes),
            cached=sum(_cached_bytes(process.cmdline()) for process in processes),
        )

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait(10)
        self._log.close()


def _cached_bytes(command: Sequence[str]) -> int:
    """Bytes in the caches of a site, from its metrics; 0 for other programs."""
    ports = [word.partition("=")[2] for word in command if word.startswith("--server.port=")]
    if not ports:
        return 0
    return int(metric(f"http://127.0.0.1:{ports[0]}", "cache_bytes"))


def metric(url: str, name: str) -> float:
    """The sum of all samples of one of the site's metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return float(sum(sample.value for sample in samples if sample.name == f"{PREFIX}_{name}"))


class Hosted(Server):
    """A site as it's hosted: up to one process per core, and a proxy."""

    def _command(self, script: str, port: int) -> list[str]:
        return [sys.executable, "-m", "deploy.sites", f"--port={port}"]

    def stop(self) -> None:
        """Stop the processes; the program waits for the ones it started."""
        self._process.terminate()
        self._process.wait(60)
        self._log.close()


@contextmanager
def site(**environment: str) -> Iterator[str]:
    """Start a server with these environment variables; yields its URL."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "log.txt", **environment)
        try:
            server.wait_until_it_listens()
            yield server.url
        finally:
            server.stop()


def rasterised(page: Page, svg: str, size: int) -> bytes:
    """Render an SVG without a size as a square, transparent PNG that's `size` pixels wide."""
    page.set_viewport_size({"width": size, "height": size})
    page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block }}</style>{svg}")
    return page.screenshot(omit_background=True)


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A headless browser. arguments: additional Chromium switches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=[*CHROMIUM_ARGUMENTS, *arguments]
        )
        yield browser
        browser.close()
