"""Reads addresses of load balancers that other clusters report, as an API server takes them. Pure.

Who keeps them in one status with those of others must leave out what is none: an API server refuses
the whole for one.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from vnode.api.names import NAME_LIMIT
from vnode.api.objects import Object, Objects

Key: TypeAlias = tuple[str, str]
"""The IP address and the host name of an address, "" for none."""

_HOSTNAME: Final = re.compile(
    r"(?![0-9.]+$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*+"
)
"""A name of DNS that is no address, for `fullmatch`."""


class _PortStatus(msgspec.Struct, omit_defaults=True):
    port: Annotated[int, msgspec.Meta(ge=0, lt=2**16)]
    protocol: Literal["TCP", "UDP", "SCTP"] | None = None
    error: str | None = None


def key_of(entry: Object) -> Key:
    """Return what tells addresses apart, however they are spelt."""
    return _ip(entry.get("ip")), _hostname(entry.get("hostname"))


def _ip(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value)) if isinstance(value, str) else ""
    except ValueError:
        return str(value)


def _hostname(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


def is_possible(key: Key) -> bool:
    """Tell whether an API server takes an address: the strictest that there are count."""
    ip, hostname = key
    if hostname and (len(hostname) > NAME_LIMIT or not _HOSTNAME.fullmatch(hostname)):
        return False

    if not ip:
        return bool(hostname)

    try:
        parsed = ipaddress.ip_address(ip)
    except ValueError:
        return False

    return parsed.version == 4 or not (parsed.scope_id or parsed.ipv4_mapped)


def clean(key: Key, entry: Object, is_service: bool) -> Object:
    """Return an address with what is known of it; that of a Service is no node's to serve."""
    ip, hostname = key
    fields = {"ip": ip, "hostname": hostname, "ports": _ports(entry.get("ports"))}
    kept = {field: value for field, value in fields.items() if value}
    return kept | {"ipMode": "Proxy"} if is_service and ip else kept


def _ports(listed: Any) -> Objects:
    """Return the ports of an address that an API server takes, as they are listed."""
    try:
        ports = msgspec.convert(listed or [], list[_PortStatus])
    except msgspec.ValidationError:
        return []

    return [msgspec.to_builtins(port) for port in ports]
