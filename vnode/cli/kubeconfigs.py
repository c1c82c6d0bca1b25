"""Kubeconfigs that `vnode connect` reads and makes.

Read: how a cluster is reached and trusted. Made: one that stands alone in a Secret, with its
authority and token inline, since the agent follows no file names out of a Secret. Pure but for the
reading of files that the operator's kubeconfig names.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import yaml

from vnode.api.errors import ConfigError
from vnode.api.names import LABEL_LIMIT
from vnode.targets import expiry

CONTEXT: Final = "target"  # the only context of a kubeconfig that is made here


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an API server is, and what it is trusted by: a kubeconfig's `cluster` section."""

    server: str
    authority: bytes | None
    server_name: str | None = None
    insecure: bool = False

    def at(self, server: str | None) -> Self:
        """The same API server under another address, if one is given; ConfigError if not https."""
        if server is None:
            return self

        if not server.startswith("https://"):
            raise ConfigError(f"--server {server!r} must start with https://")

        return replace(self, server=server.rstrip("/"))

    @property
    def is_local(self) -> bool:
        """The address means something else on every machine."""
        return bool(re.match(r"https?://(127\.0\.0\.1|localhost|\[::1\])(:|/|$)", self.server))


def read(path: Path, context: str | None = None) -> tuple[Reach, str]:
    """How the cluster of a context is reached, and the kubeconfig's name for it.

    The kubeconfig is one that `vnode.kube.endpoint` has accepted before.
    """
    return parse(path.read_bytes(), path.parent, context)


def parse(text: bytes, base: Path, context: str | None = None) -> tuple[Reach, str]:
    """The same of a text whose relative paths belong to the folder `base`."""
    config = yaml.safe_load(text)
    chosen = _named(config["contexts"], context or config["current-context"])["context"]
    name = str(chosen["cluster"])
    cluster = _named(config["clusters"], name)["cluster"]
    reach = Reach(
        str(cluster["server"]).rstrip("/"),
        _authority(cluster, base),
        cluster.get("tls-server-name"),
        bool(cluster.get("insecure-skip-tls-verify")),
    )
    return reach, name


def build(reach: Reach, token: str, namespace: str) -> bytes:
    """A kubeconfig with one context, everything inline; the same input gives the same bytes."""
    cluster: dict[str, Any] = {"server": reach.server}
    if reach.authority:
        cluster["certificate-authority-data"] = base64.b64encode(reach.authority).decode()

    if reach.server_name:
        cluster["tls-server-name"] = reach.server_name

    if reach.insecure:
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


def token_in(kubeconfig: bytes) -> str | None:
    """The token of a kubeconfig as `build` makes it, None if it is not such a one."""
    try:
        config = yaml.safe_load(kubeconfig)
        token = config["users"][0]["user"]["token"]
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return None

    return token if isinstance(token, str) else None


def lifetime(token: str) -> tuple[float, float] | None:
    """(issued at, ends at) of a service account token in Unix time; None if it does not say.

    The signature is not checked: this serves to renew in time, not to trust.
    """
    claims = expiry.claims(token)
    try:
        return float(claims["iat"]), float(claims["exp"])
    except (KeyError, TypeError, ValueError):
        return None


def object_name(text: str) -> str:
    """A kubeconfig's name for a cluster as a name for an object: `kind-c1` stays, others adapt.

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
