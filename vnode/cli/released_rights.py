"""Finds and ends the rights that an agent keeps in a namespace while it has pods there to end.

An agent takes that finalizer off itself. Whoever narrows or removes an installation does not wait.
"""

from __future__ import annotations

from vnode.api import keys, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import scoped_rights
from vnode.kube.client import Client


async def given(client: Client) -> list[tuple[Kind, Object]]:
    """Return what gives an agent rights in namespaces only, in the order of its deletion."""
    selector = f"{scoped_rights.LABEL}=true"
    return [
        (kind, obj)
        for kind in scoped_rights.KINDS
        for obj in await client.list(kind, label_selector=selector)
    ]


async def release(client: Client, kind: Kind, obj: Object) -> None:
    """Take off the finalizer by which an agent keeps its rights: they are to go now."""
    if keys.WORK_LEFT in objects.finalizers(obj):
        body = {"metadata": {"finalizers": objects.finalizers_without(obj, keys.WORK_LEFT)}}
        await client.patch(kind, objects.name(obj), body, objects.namespace(obj) or None)
