"""Evicts pods: deletes them as far as disruption budgets allow it."""

from __future__ import annotations

from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


async def evict(client: Client, pod: Object, *, grace: int | None = None) -> None:
    """Evict a pod, and no later one of its name.

    Raises TooManyRequests if a budget does not allow it now, NotFound or Conflict if the pod is
    gone.
    """
    name, namespace = objects.name(pod), objects.namespace(pod)
    options: Object = {"preconditions": {"uid": objects.uid(pod)}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace

    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    }
    await client.create(kinds.PODS, body, namespace, name=name, subresource="eviction")
