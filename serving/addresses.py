"""Which addresses count as one visitor."""

from __future__ import annotations

import ipaddress


def network_of(address: str) -> str:
    """The network that shares an address's limits: an IPv4 address, or an IPv6 /64 prefix.

    Text that is not an IP address is returned as it is.
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
