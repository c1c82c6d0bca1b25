"""Finds device claims that a delegate names and its cluster lacks.

kube-scheduler holds a pod without them in PreEnqueue, where it writes no condition: nobody would
hear why the pod waits. So they are looked up before the pod is made.
"""

from __future__ import annotations

from vnode.api import device_claims, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def missing(client: Client, chaperon: Object) -> str:
    """Return which ResourceClaim or template is not there, with the cure; "" if none is missing."""
    namespace = objects.namespace(chaperon)
    for kind, name in dict.fromkeys(device_claims.of(objects.spec(chaperon))):
        if problem := await _problem(client, kind, name, namespace):
            return f'{kind.kind} "{name}" {problem}'

    return ""


async def _problem(client: Client, kind: Kind, name: str, namespace: str) -> str:
    try:
        found = await client.get(kind, name, namespace)
    except NotFound as error:
        if error.reason != "NotFound":
            return ""  # another version of the API is served, if any: the scheduler knows it

        return (
            f"not found: create it in namespace {namespace} of the pod's own cluster, from where "
            "it follows, or of the target"
        )
    except Denied:
        return ""

    if objects.is_terminating(found):
        return "is being deleted: it can be used once it is gone and created again"

    return ""
