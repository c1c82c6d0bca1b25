"""Kubeconfigs with everything embedded, so that they can be copied anywhere."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

from hack.fleetlib import addresses

if TYPE_CHECKING:
    from pathlib import Path

    from hack.fleetlib.certificates import CertificateAuthority, CertificatePair


def render(
    cluster: str, address: str, user: str, authority: CertificateAuthority, pair: CertificatePair
) -> str:
    """Return a kubeconfig with one context, named like its cluster."""
    server = {
        "server": f"https://{address}:{addresses.API_SERVER}",
        "certificate-authority-data": _base64(authority.pair.certificate_pem),
    }
    credentials = {
        "client-certificate-data": _base64(pair.certificate_pem),
        "client-key-data": _base64(pair.key_pem),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(config, sort_keys=False)


def write(file: Path, text: str) -> None:
    """Write credentials, readable by their owner only."""
    file.touch(mode=0o600)
    file.write_text(text)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
