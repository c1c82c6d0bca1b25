"""The inventory of SIG Multicluster as its own module has it: the CRD, and a plugin as it is built.

Neither is part of this repository. The first use on a machine downloads the module and builds the
plugin, which takes about a minute.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml

from hack.fleetlib.tools import binaries, catalogue, gobuild
from tests import kit
from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client

CRD = "clusterprofiles.multicluster.x-k8s.io"
EXTENSION = "client.authentication.k8s.io/exec"


def secretreader() -> Path:
    """Return the plugin that reads a token from a Secret, unmodified."""
    return plugin("secretreader")


def plugin(name: str) -> Path:
    """Return a plugin of the inventory project, unmodified."""
    return binaries.locate([name])[name]


def crd() -> Object:
    """Return the CRD of ClusterProfiles, unmodified."""
    bases = gobuild.source(catalogue.CLUSTER_INVENTORY_MODULE) / "config/crd/bases"
    found: Object = yaml.safe_load(
        (bases / "multicluster.x-k8s.io_clusterprofiles.yaml").read_text()
    )
    return found


async def install(client: Client) -> None:
    """Install the CRD, and return at once: it is not served yet."""
    await client.create(kinds.CRDS, await asyncio.to_thread(crd))


async def uninstall(client: Client) -> None:
    """Remove the CRD, with all profiles."""
    try:
        await client.delete(kinds.CRDS, CRD)
    except NotFound:
        return

    await kit.until_gone(client, kinds.CRDS, field_selector=f"metadata.name={CRD}")


async def installed(client: Client) -> None:
    """Install the CRD, and return once it is served."""
    await install(client)
    await kit.until_served(client, kinds.CLUSTER_PROFILES)


def access(server: str, authority: str, cluster_name: str, **more: Any) -> Object:
    """Return an access provider that the secret reader serves."""
    cluster = {
        "server": server,
        "certificate-authority-data": authority,
        "extensions": [{"name": EXTENSION, "extension": {"clusterName": cluster_name}}],
    }
    return {"name": "secretreader", "cluster": {**cluster, **more}}


async def add_profile(
    client: Client, namespace: str, name: str, status: Object, **labels: str
) -> Object:
    """Create a profile, as a cluster manager does."""
    profile = {
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"displayName": f"Cluster {name}", "clusterManager": {"name": "tests"}},
    }
    await kit.until_served(client, kinds.CLUSTER_PROFILES)
    await client.create(kinds.CLUSTER_PROFILES, profile, namespace)
    return await set_status(client, namespace, name, status)


async def set_status(client: Client, namespace: str, name: str, status: Object) -> Object:
    """Write the status of a profile, as a cluster manager does."""
    body = {"status": status}
    return await client.patch(kinds.CLUSTER_PROFILES, name, body, namespace, subresource="status")


def reason(target: Object) -> str:
    """Return the reason of a Target's Ready condition."""
    return str((objects.condition(target, "Ready") or {}).get("reason", ""))
