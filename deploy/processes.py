"""Programs that run side by side and end together."""

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
    """Named programs that share our standard output and standard error."""

    def __init__(self) -> None:
        self._running: dict[str, _Program] = {}

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] = {}) -> None:
        """Start a program in the project folder, with these extra environment variables."""
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}
        )
        self._running[name] = _Program(tuple(command), dict(environment), process)

    def restart(self, name: str) -> None:
        """Restart a program that has ended, with the same command and variables."""
        program = self._running[name]
        self.start(name, program.command, program.environment)

    def exited(self) -> list[str]:
        """Names of the programs that have ended."""
        running = self._running.items()
        return [name for name, program in running if program.process.poll() is not None]

    def check(self, *names: str) -> None:
        """Raise RuntimeError if one of these programs has ended; without names, if any has."""
        for name in self.exited():
            if not names or name in names:
                code = self._running[name].process.returncode
                raise RuntimeError(f"the {name} ended with exit code {code}; see its output above")

    def wait_until(self, address: str, *names: str) -> None:
        """Wait until a local URL responds. Requests bypass any configured proxy.

        Raises: RuntimeError if it doesn't respond in `READY_SECONDS`, or if one of the named
        programs ends (any program if no name is given).
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
        raise RuntimeError(f"{address} did not respond within {READY_SECONDS:g} s")

    def stop(self) -> None:
        """Stop all programs, the last one first."""
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
    """The command that starts one site."""
    site = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true"]
    site.append("--logger.hideWelcomeMessage=true")  # it shows the site's port, not the proxy's
    return [*site, f"--server.port={port}", f"--server.address={address}"]


@contextmanager
def run_until_signal() -> Iterator[Processes]:
    """Yield a `Processes`; SIGINT or SIGTERM leaves the block, and then all programs are stopped.

    Both signals are set up because shells make background programs ignore SIGINT.
    """
    for ends in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ends, signal.default_int_handler)
    programs = Processes()
    try:
        yield programs
    except KeyboardInterrupt:
        pass
    finally:
        for ends in (signal.SIGINT, signal.SIGTERM):  # a second signal must not interrupt the stop
            signal.signal(ends, signal.SIG_IGN)
        programs.stop()
