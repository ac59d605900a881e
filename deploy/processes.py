"""Programs that run beside each other and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 300.0
END_SECONDS = 20.0


@dataclass(frozen=True)
class _Program:
    command: tuple[str, ...]
    environment: dict[str, str]
    process: subprocess.Popen[bytes]


class Processes:
    """The programs, by what they are; what they write is written here."""

    def __init__(self) -> None:
        self._running: dict[str, _Program] = {}

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] = {}) -> None:
        """Start a program in the folder of the project, with these variables besides our own."""
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}
        )
        self._running[name] = _Program(tuple(command), dict(environment), process)

    def start_again(self, name: str) -> None:
        """Start a program that has ended as it was started before."""
        program = self._running[name]
        self.start(name, program.command, program.environment)

    def ended(self) -> list[str]:
        """The programs that have ended."""
        running = self._running.items()
        return [name for name, program in running if program.process.poll() is not None]

    def check(self, *names: str) -> None:
        """Raise RuntimeError if one of these programs has ended; without names, if any has."""
        for name in self.ended():
            if not names or name in names:
                code = self._running[name].process.returncode
                raise RuntimeError(f"the {name} ended with {code}")

    def wait_until(self, address: str, *names: str) -> None:
        """Wait for an address of this machine to answer; it is asked without a proxy.

        Raises: RuntimeError where it does not, or where one of these programs has ended; without
        names, where any has.
        """
        directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            self.check(*names)
            try:
                with directly.open(address, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        raise RuntimeError(f"{address} does not answer after {READY_SECONDS:g} s")

    def stop(self) -> None:
        """End all programs, the last one first."""
        processes = [program.process for program in self._running.values()]
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def site_command(port: int, address: str) -> list[str]:
    """What starts one site."""
    site = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true"]
    site.append("--logger.hideWelcomeMessage=true")  # it names the port of this one site
    return [*site, f"--server.port={port}", f"--server.address={address}"]


@contextmanager
def until_a_signal() -> Iterator[Processes]:
    """Processes to start; SIGINT and SIGTERM lead out of the block, and all of them end behind it.

    Both are asked for: a shell hides SIGINT from what it runs in the background.
    """
    for ends in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ends, signal.default_int_handler)
    programs = Processes()
    try:
        yield programs
    except KeyboardInterrupt:
        pass
    finally:
        for ends in (signal.SIGINT, signal.SIGTERM):  # a second one would leave programs behind
            signal.signal(ends, signal.SIG_IGN)
        programs.stop()
