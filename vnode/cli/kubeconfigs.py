"""Reads kubeconfigs for `vnode connect`, and those that it has built.

It reads a cluster's address and certificate authority. Pure but for reading files that the
operator's kubeconfig names.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any, Final

from vnode.api.errors import ConfigError
from vnode.api.names import LABEL_LIMIT
from vnode.kube import kubeconfig_text
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import expiry

# What builds them is shared with the agent; here, reading and building are found together.
CONTEXT: Final = kubeconfig_text.CONTEXT
ClusterEndpoint = kubeconfig_text.ClusterEndpoint
build = kubeconfig_text.build


def read(path: Path, context: str | None = None) -> tuple[ClusterEndpoint, str]:
    """Read the endpoint of a context's cluster, and the kubeconfig's name for it."""
    return cluster_of(Kubeconfig.parse(path.read_bytes(), context, path.parent))


def cluster_of(kubeconfig: Kubeconfig) -> tuple[ClusterEndpoint, str]:
    """Return the endpoint of a kubeconfig's cluster, and its name there.

    The kubeconfig must be one that `vnode.kube.endpoint` accepts.
    """
    cluster = kubeconfig.cluster
    endpoint = ClusterEndpoint(
        str(cluster["server"]).rstrip("/"),
        _authority(cluster, kubeconfig.base),
        cluster.get("tls-server-name"),
        bool(cluster.get("insecure-skip-tls-verify")),
    )
    return endpoint, str(kubeconfig.context["cluster"])


def token_in(kubeconfig: bytes) -> str | None:
    """Return the token of a kubeconfig that `build` has made, None if it is another."""
    try:
        return Kubeconfig.parse(kubeconfig).token or None
    except ConfigError:
        return None


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


def _authority(cluster: dict[str, Any], base: Path) -> bytes | None:
    if data := cluster.get("certificate-authority-data"):
        return base64.b64decode(data)

    file = cluster.get("certificate-authority")
    return (base / file).read_bytes() if file else None
