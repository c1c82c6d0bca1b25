"""Builds Leases, which say who holds something and until when, and renews those of nodes.

Builders are pure. A node's lease is its heartbeat: the node holds it and owns it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import AlreadyExists, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client

NODE_NAMESPACE: Final = "kube-node-lease"
NODE_DURATION: Final = 40  # seconds, the kubelet's
NODE_RENEWAL: Final = 10.0  # seconds between two heartbeats, the kubelet's


def build(
    name: str, namespace: str, holder: str, duration: int, now: datetime, *, transitions: int = 0
) -> Object:
    """Build a Lease that is held from now on for `duration` seconds."""
    return {
        "apiVersion": kinds.LEASES.api_version,
        "kind": kinds.LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "leaseTransitions": transitions,
            "acquireTime": objects.micro_timestamp(now),
            "renewTime": objects.micro_timestamp(now),
        },
    }


def build_for_node(name: str, uid: str, now: datetime) -> Object:
    """Build the Lease of a node; it is deleted with the node."""
    lease = build(name, NODE_NAMESPACE, name, NODE_DURATION, now)
    owner = {
        "apiVersion": kinds.NODES.api_version,
        "kind": kinds.NODES.kind,
        "name": name,
        "uid": uid,
    }
    lease["metadata"]["ownerReferences"] = [owner]
    return lease


def renewal(now: datetime) -> Object:
    """Build the merge patch that renews a lease that is already ours."""
    return {"spec": {"renewTime": objects.micro_timestamp(now)}}


def takeover(lease: Object, holder: str, duration: int, now: datetime) -> Object:
    """Build the merge patch that makes `holder` the holder.

    The API server answers Conflict if the lease changed meanwhile.
    """
    spec = objects.spec(lease)
    changes = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "renewTime": objects.micro_timestamp(now),
    }
    if spec.get("holderIdentity") != holder:
        changes["acquireTime"] = objects.micro_timestamp(now)
        changes["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1

    return objects.if_unchanged({"spec": changes}, lease)


def release(lease: Object, now: datetime) -> Object:
    """Build the merge patch by which the holder gives its lease up.

    The API server answers Conflict if the lease changed meanwhile.
    """
    changes = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "renewTime": objects.micro_timestamp(now),
    }
    return objects.if_unchanged({"spec": changes}, lease)


async def renew_for_node(client: Client, name: str, uid: str, now: datetime) -> None:
    """Send one heartbeat of a node: renew its lease, or create it if there is none.

    A lease that is left of an earlier node of that name is taken over.
    """
    lease = build_for_node(name, uid, now)
    body = {
        "metadata": {"ownerReferences": lease["metadata"]["ownerReferences"]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": NODE_DURATION,
            **renewal(now)["spec"],
        },
    }
    try:
        await client.patch(kinds.LEASES, name, body, NODE_NAMESPACE)
    except NotFound:
        try:
            await client.create(kinds.LEASES, lease)
        except AlreadyExists:
            await client.patch(kinds.LEASES, name, body, NODE_NAMESPACE)
