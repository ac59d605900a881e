"""A server of the site and a Chromium, for the benchmarks and the tests that look at pages."""

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
    """A Chromium on the PATH; None leaves the choice to Playwright's own download.

    The headless shell first: it has no window to draw, and opens a page with a quarter less work.
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
    """A port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """Where a server of the site answers: an address without a slash at its end."""

    def __init__(self, url: str) -> None:
        self.url = url


@dataclass(frozen=True)
class Memory:
    """Bytes of a site that are in memory, and how many of them it keeps on purpose.

    What is kept are models and what was computed for visitors (`serving.cache`), within bounds. The
    rest is what would grow without an end if the site lost memory.
    """

    resident: int
    kept: int

    @property
    def rest(self) -> int:
        """Bytes that nothing is kept in."""
        return self.resident - self.kept


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
                text = Path(self._log.name).read_text()
                raise RuntimeError(f"the server ended with {code}: {text}") from None
        raise RuntimeError(f"no answer in {START_SECONDS} s: {Path(self._log.name).read_text()}")

    def memory(self) -> Memory:
        """Of all processes that serve the site; what two of them share counts twice."""
        program = psutil.Process(self._process.pid)
        processes = [program, *program.children(recursive=True)]
        return Memory(
            resident=sum(int(process.memory_info().rss) for process in processes),
            kept=sum(_kept_bytes(process.cmdline()) for process in processes),
        )

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait(10)
        self._log.close()


def _kept_bytes(command: Sequence[str]) -> int:
    """Bytes that a site keeps, by its own numbers; 0 for another program than a site."""
    ports = [word.partition("=")[2] for word in command if word.startswith("--server.port=")]
    if not ports:
        return 0
    return int(metric(f"http://127.0.0.1:{ports[0]}", "cache_bytes"))


def metric(url: str, name: str) -> float:
    """The sum of all values of a number that a site tells of itself."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    return float(sum(sample.value for sample in samples if sample.name == f"{PREFIX}_{name}"))


class Hosted(Server):
    """A site as it is hosted: as many processes as the machine is good for, and a proxy."""

    def _command(self, script: str, port: int) -> list[str]:
        return [sys.executable, "-m", "deploy.sites", f"--port={port}"]

    def stop(self) -> None:
        """End the processes; the program waits for those that it started."""
        self._process.terminate()
        self._process.wait(60)
        self._log.close()


@contextmanager
def site(**environment: str) -> Iterator[str]:
    """The address of a server of one's own, with these variables in its environment."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "log.txt", **environment)
        try:
            server.wait_until_it_listens()
            yield server.url
        finally:
            server.stop()


def rasterised(page: Page, svg: str, size: int) -> bytes:
    """An SVG without a size of its own as a PNG, `size` pixels wide and high, no background."""
    page.set_viewport_size({"width": size, "height": size})
    page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block }}</style>{svg}")
    return page.screenshot(omit_background=True)


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A browser without windows; arguments: more of Chromium's switches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=[*CHROMIUM_ARGUMENTS, *arguments]
        )
        yield browser
        browser.close()
