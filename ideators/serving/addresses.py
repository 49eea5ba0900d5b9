"""Addresses: listening on one, naming it, and which of them lead to this machine only."""

from __future__ import annotations

import ipaddress
import re
import socket

from mle_ideator.errors import UsageError

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]|([A-Za-z0-9.-]+))(?::[0-9]{0,5})?")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def host_in(header: str) -> str:
    """A Host header without its port, an IPv6 address without its brackets; empty if it is none."""
    found = _HOST.fullmatch(header)
    return (found[1] or found[2]) if found else ""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `UsageError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"can not listen on {host} port {port}: {reason}.") from error


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
