"""Pods, chaperons and delegates of one cluster that is source and target, made without agents."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Final

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.store import Store
from vnode.runtime.link import PARENT_KEY_INDEX, PARENT_UID_INDEX, Link
from vnode.runtime.link_health import LinkHealth

HOLD: Final = "example.com/still-running"


def make_link(client: Client, target: TargetKey) -> Link:
    """Return a link that knows only the chaperons that a test puts into its store."""
    indexes: Any = {
        PARENT_UID_INDEX: lambda obj: (objects.labels(obj).get(keys.PARENT_UID, ""),),
        PARENT_KEY_INDEX: lambda _obj: (),
    }
    chaperons: Any = SimpleNamespace(
        synced=asyncio.Event(), store=Store(indexes), subscribe=lambda _handler: None
    )
    chaperons.synced.set()
    summaries: Any = SimpleNamespace(store=Store())
    health = LinkHealth(True, "Connected", "the target answers", SystemClock().now())
    return Link(target, client, chaperons=chaperons, summaries=summaries, health=health)


async def chaperon(client: Client, namespace: str, name: str, parent_uid: str = "") -> Object:
    """Create a chaperon that stays until its finalizer is taken off."""
    body: Object = {
        "metadata": {"name": name, "finalizers": [keys.DELEGATE_FINALIZER]},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    if parent_uid:
        body["metadata"]["labels"] = {keys.PARENT_UID: parent_uid}

    return await client.create(kinds.POD_CHAPERONS, body, namespace)


async def free(client: Client, made: Object) -> None:
    """Take off the finalizers of a chaperon."""
    patch = {"metadata": {"finalizers": None}}
    await client.patch(kinds.POD_CHAPERONS, objects.name(made), patch, objects.namespace(made))


async def delegate(client: Client, of: Object, parent_uid: str) -> Object:
    """Create the delegate of a chaperon; it does not end as long as it is held."""
    pod = kit.pod(objects.name(of), annotations={})
    owner = objects.reference(of, kinds.POD_CHAPERONS.kind, kinds.POD_CHAPERONS.api_version)
    owner = {k: owner[k] for k in ("apiVersion", "kind", "name", "uid")} | {"controller": True}
    pod["metadata"] |= {
        "finalizers": [HOLD],
        "labels": {keys.PARENT_UID: parent_uid},
        "ownerReferences": [owner],
    }
    return await client.create(kinds.PODS, pod, objects.namespace(of))


async def release(client: Client, pod: Object) -> None:
    """End a delegate that is held, and wait until it is gone."""
    namespace, name = objects.namespace(pod), objects.name(pod)
    await client.patch(kinds.PODS, name, {"metadata": {"finalizers": None}}, namespace)
    await client.discard(kinds.PODS, pod, grace=0)
    await kit.until_gone(client, kinds.PODS, namespace, field_selector=f"metadata.name={name}")
