"""Which addresses a remote engram may have: any server of one's own, never a cloud's metadata service."""

import ipaddress
import socket
from urllib.parse import urlsplit

Resolved = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Metadata services outside the link-local ranges: AWS over IPv6, Alibaba, Oracle, Azure's host agent.
_METADATA = {
    ipaddress.ip_address(one) for one in ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def refused_reason(address: object) -> str:
    """What is wrong with this numeric address, or "" where it may be called."""
    try:
        found = ipaddress.ip_address(str(address).partition("%")[0])
    except ValueError:
        return "no address"
    for one in _meant(found):
        if one in _METADATA:
            return "a metadata service"
        if one.is_link_local:
            return "a link-local address"
        if one.is_multicast or one.is_unspecified:
            return "no single server"
    return ""


def _meant(address: IPAddress) -> list[IPAddress]:
    """The address, and the IPv4 one it carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inside: list[IPAddress | None] = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64:
        inside.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(one for one in inside if one is not None)]


def url_problem(url: str) -> str:
    """What is wrong with an engram's address as the operator wrote it, or "" where it is fit to use."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a server"
    if parts.username is not None or parts.query or parts.fragment:
        return "must hold no name, password or query; the token goes to ENGRAM_TOKEN"
    if port == 0 or not url.isascii() or any(sign <= " " or sign == "\x7f" for sign in url):
        return "is no address"
    try:
        ipaddress.ip_address(parts.hostname.partition("%")[0])
    except ValueError:
        return ""
    reason = refused_reason(parts.hostname)
    return f"leads to {reason}" if reason else ""
