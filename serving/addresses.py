"""The network whose addresses share one visitor's limits."""

from __future__ import annotations

import ipaddress


def network_prefix(address: str) -> str:
    """The network of an address: the IPv4 address itself, or the IPv6 /64 prefix.

    Text that isn't an IP address is returned unchanged.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False))
