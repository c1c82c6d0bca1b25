"""Reads kubeconfigs for `vnode connect`, and those that it has built.

It reads a cluster's address and certificate authority. Pure but for reading files that the
operator's kubeconfig names.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any, Final

import yaml

from vnode.api.errors import ConfigError
from vnode.api.names import LABEL_LIMIT
from vnode.kube import kubeconfig_text
from vnode.targets import expiry

# What builds them is shared with the agent; here, reading and building are found together.
CONTEXT: Final = kubeconfig_text.CONTEXT
ClusterEndpoint = kubeconfig_text.ClusterEndpoint
build = kubeconfig_text.build


def read(path: Path, context: str | None = None) -> tuple[ClusterEndpoint, str]:
    """Read the endpoint of a context's cluster, and the kubeconfig's name for it.

    The kubeconfig must be one that `vnode.kube.endpoint` accepts.
    """
    return parse(path.read_bytes(), path.parent, context)


def parse(text: bytes, base: Path, context: str | None = None) -> tuple[ClusterEndpoint, str]:
    """Parse a kubeconfig as `read` does; its relative paths belong to the folder `base`."""
    config = yaml.safe_load(text)
    chosen = _named(config["contexts"], context or config["current-context"])["context"]
    name = str(chosen["cluster"])
    cluster = _named(config["clusters"], name)["cluster"]
    endpoint = ClusterEndpoint(
        str(cluster["server"]).rstrip("/"),
        _authority(cluster, base),
        cluster.get("tls-server-name"),
        bool(cluster.get("insecure-skip-tls-verify")),
    )
    return endpoint, name


def token_in(kubeconfig: bytes) -> str | None:
    """Return the token of a kubeconfig that `build` has made, None if it is another."""
    try:
        config = yaml.safe_load(kubeconfig)
        token = config["users"][0]["user"]["token"]
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return None

    return token if isinstance(token, str) else None


def lifetime(token: str) -> tuple[float, float] | None:
    """Return (issued at, expires at) of a service account token in Unix time; None if unknown.

    The signature is not verified: this serves to renew in time, not to authenticate.
    """
    claims = expiry.claims(token)
    try:
        return float(claims["iat"]), float(claims["exp"])
    except (KeyError, TypeError, ValueError):
        return None


def object_name(text: str) -> str:
    """Convert a kubeconfig's name for a cluster to the name of an object: `kind-c1` stays.

    Raises ConfigError if nothing usable is left.
    """
    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:LABEL_LIMIT].strip("-")
    if not name:
        raise ConfigError(f"the kubeconfig calls the cluster {text!r}: name it with an option")

    return name


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _authority(cluster: dict[str, Any], base: Path) -> bytes | None:
    if data := cluster.get("certificate-authority-data"):
        return base64.b64decode(data)

    file = cluster.get("certificate-authority")
    return (base / file).read_bytes() if file else None
