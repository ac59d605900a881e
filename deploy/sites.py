"""A site for each core of this machine, behind one address: `make host`, and what the image starts.

All pages and passes of one process share one Python interpreter, which a second core helps little.
So as many processes as there are cores serve the site, each with one thread for torch, and a proxy
leads every visitor to one of them and always to the same. A site that ends is started again; its
visitors meanwhile go to another one, which reads from the address what they looked at.

How many: one for each core and for each SITE_BYTES of memory, or of the GPU's, if that is less;
ATTENTION_LAB_SITES names another number. One site needs no proxy: this program then becomes it.
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

from deploy.processes import ROOT, Processes, site_command, until_a_signal
from deploy.proxy.program import configuration, haproxy
from pretrained import settings
from serving import cores, first_models, gpu, log, memory

VARIABLE = settings.SITES.name
# The bundled models, what is kept for visitors, and room for a pass. On a GPU, where the process
# itself takes half a gigabyte, four sites with small models took 4.8 GB under a crowd.
SITE_BYTES = 2_700_000_000
# Every run of a page is a thread of its own. glibc gives threads up to eight heaps a core, and what
# is freed in one of them does not serve another. Beside what they keep, two sites took 1.2 GB with
# two heaps each after three thousand visits, 1.5 GB without (benchmarks/results/load_2_cores.txt).
HEAPS_VARIABLE, HEAPS = "MALLOC_ARENA_MAX", 2
# A machine without a GPU and with fewer cores opens its pages with small models, so that it holds a
# crowd: with SmolLM2, which is twenty times as large, pages took three times as long on two cores
# (the same file).
ENOUGH_CORES = 8
MOST_STARTS_A_MINUTE = 5  # of a site that has ended; with more, it would end again and again


def count(n_cores: int, n_bytes: int) -> int:
    """How many sites to start: what the variable says, or what the machine is good for.

    That is one where nobody can tell how many its GPU has room for.
    Raises ValueError where the variable holds no whole number from 1 to 64.
    """
    asked_for = settings.SITES.read()
    if asked_for is not None:
        return asked_for
    if gpu.memory_bytes() == 0:
        return 1
    return max(1, min(n_cores, n_bytes // SITE_BYTES, settings.MAX_SITES))


def environment(n_sites: int, n_cores: int, n_bytes: int) -> dict[str, str]:
    """Each site's share of the machine, heaps of its threads and first models, as variables."""
    is_small = n_cores < ENOUGH_CORES and not gpu.is_here()
    asked_for = os.environ.get(first_models.VARIABLE, "").strip()
    return {
        cores.VARIABLE: str(max(1, n_cores // n_sites)),
        memory.VARIABLE: f"{n_bytes / n_sites / 1e9:.3f}",
        HEAPS_VARIABLE: os.environ.get(HEAPS_VARIABLE, str(HEAPS)),
        first_models.VARIABLE: asked_for or (first_models.SMALL if is_small else ""),
    }


def start(
    programs: Processes,
    proxy: str,
    ports: Sequence[int],
    share: Mapping[str, str],
    address: str,
    port: int,
) -> None:
    """Start the sites, wait for the first one, and open the door at this address and port.

    proxy: the program of HAProxy. share: variables of each site. Another site that ends meanwhile
    is left to `keep_up`.
    Raises: RuntimeError where the first site or the proxy ends or does not answer.
    """
    for number, its_port in enumerate(ports, start=1):
        programs.start(f"site {number}", site_command(its_port, "127.0.0.1"), share)
    programs.wait_until(f"http://127.0.0.1:{ports[0]}/readyz", "site 1")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(configuration(ports), encoding="utf-8")
        programs.start("proxy", [proxy, "-f", str(file)], {"BIND": f"{address}:{port}"})
        programs.wait_until(f"http://{door(address)}:{port}/_stcore/health", "proxy")


def door(address: str) -> str:
    """Where this machine itself reaches what listens at an address."""
    return "127.0.0.1" if address in ("0.0.0.0", "::") else address


def check_address(address: str, port: int) -> None:
    """End the program with one line if nothing can listen at this address and port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            if os.name != "nt":  # there the option would hide that the port is in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except (OSError, OverflowError, TypeError) as error:  # the last: a name that is no host name
        reason = getattr(error, "strerror", None) or error
        raise SystemExit(
            f"Cannot listen at {ascii(address)}, port {port}: {reason}. Choose an address of this "
            "machine and a free port with --address and --port."
        ) from None


def say(event: str, level: str = "info", **facts: str | int) -> None:
    """Tell whoever runs the site: one line of the log where that is on, else a sentence."""
    if log.is_on():
        log.event(event, level, **facts)
    else:
        about = ", ".join(str(fact) for fact in facts.values())
        print(f"{event}: {about}" if about else event, file=sys.stderr, flush=True)


def keep_up(programs: Processes, starts: deque[tuple[float, str]]) -> None:
    """Start again the sites that have ended; `starts` holds when and which in the last minute.

    Raises: RuntimeError where the proxy has ended, and for too many starts of a site in a minute.
    """
    now = time.monotonic()
    while starts and now - starts[0][0] > 60:
        starts.popleft()
    for name in programs.ended():
        n_starts = sum(started == name for _, started in starts)
        if name == "proxy" or n_starts >= MOST_STARTS_A_MINUTE:
            programs.check()
        say("ended, and started again", "warning", program=name)
        programs.start_again(name)
        starts.append((now, name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl+C or a signal to end."""
    parser = argparse.ArgumentParser(prog="python -m deploy.sites")
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 to be reached from outside")
    parser.add_argument("--port", type=int, default=8501, help="each site has one of those behind")
    options = parser.parse_args(arguments)
    settings.check_or_exit()
    check_address(options.address, options.port)
    log.start()
    n_cores, n_bytes = cores.cores(), memory.memory_bytes()
    n_sites = count(n_cores, n_bytes)
    proxy = haproxy()
    if n_sites > 1 and proxy is None:
        say("there is no HAProxy here: one site instead of several", "warning")
        n_sites = 1
    share = environment(n_sites, n_cores, n_bytes)
    url = f"http://{options.address}:{options.port}"
    if n_sites == 1 or proxy is None:
        say("one site", address=url)
        os.chdir(ROOT)
        command = site_command(options.port, options.address)
        os.execve(command[0], command, {**os.environ, **share})
    with until_a_signal() as programs:
        ports = range(options.port + 1, options.port + 1 + n_sites)
        start(programs, proxy, ports, share, options.address, options.port)
        say(f"{n_sites} sites behind one address", address=url)
        starts = deque[tuple[float, str]]()
        while True:
            keep_up(programs, starts)
            time.sleep(1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
