"""Ends the rights that an agent keeps in a namespace while it has pods there to end.

An agent takes that finalizer off itself. Whoever narrows or removes an installation does not wait.
"""

from __future__ import annotations

from vnode.api import keys, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def release(client: Client, kind: Kind, obj: Object) -> None:
    """Take off the finalizer by which an agent keeps its rights: they are to go now."""
    if keys.WORK_LEFT in objects.finalizers(obj):
        body = {"metadata": {"finalizers": objects.finalizers_without(obj, keys.WORK_LEFT)}}
        await client.patch(kind, objects.name(obj), body, objects.namespace(obj) or None)
