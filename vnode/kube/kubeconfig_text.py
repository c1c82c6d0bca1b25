"""Builds kubeconfigs for Secrets: with authority and token inline, for readers without our files.

For `vnode connect`, and for tokens that are issued to others. Pure.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import yaml

from vnode.api.errors import ConfigError

CONTEXT: Final = "target"  # the only context of a kubeconfig that is built here


@dataclass(frozen=True, slots=True)
class ClusterEndpoint:
    """A kubeconfig's `cluster` section: an API server's address, and how it is verified."""

    server: str
    authority: bytes | None
    server_name: str | None = None
    insecure: bool = False

    def at(self, server: str | None) -> Self:
        """Return this API server at another address, if one is given; ConfigError if not https."""
        if server is None:
            return self

        if not server.startswith("https://"):
            raise ConfigError(f"--server {server!r} must start with https://")

        return replace(self, server=server.rstrip("/"))

    @property
    def is_local(self) -> bool:
        """Whether the address means something else on every machine."""
        return bool(re.match(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:|/|$)", self.server))


def build(endpoint: ClusterEndpoint, token: str, namespace: str) -> bytes:
    """Build a kubeconfig with one context, everything inline; equal input gives equal bytes."""
    cluster: dict[str, Any] = {"server": endpoint.server}
    if endpoint.authority:
        cluster["certificate-authority-data"] = base64.b64encode(endpoint.authority).decode()

    if endpoint.server_name:
        cluster["tls-server-name"] = endpoint.server_name

    if endpoint.insecure:
        cluster["insecure-skip-tls-verify"] = True

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [
            {
                "name": CONTEXT,
                "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace},
            }
        ],
        "current-context": CONTEXT,
    }
    return yaml.safe_dump(config, sort_keys=False).encode()
