"""Finds the delegate of a chaperon: which pod of its name is its own, if need be by a request."""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import delegate

CATCH_UP: Final = 0.5
"""Seconds until the informer has surely seen what `fetch` has found."""


async def fetch(client: Client, chaperon: Object) -> Object | None:
    """Ask the API server for a delegate that the store does not show; None if there is none.

    It may have been made a moment ago. Or somebody removed the label by which delegates are listed:
    then that is put back.
    """
    try:
        pod = await client.get(kinds.PODS, objects.name(chaperon), objects.namespace(chaperon))
        return await mended(client, chaperon, pod) if is_of(chaperon, pod) else None
    except NotFound:
        return None


def is_of(chaperon: Object, pod: Object) -> bool:
    """Tell whether a pod is the delegate of a chaperon, though it may have lost its owner."""
    own = objects.controller_uid(pod) == objects.uid(chaperon)
    return own or delegate.is_adoptable(chaperon, pod)


async def mended(client: Client, chaperon: Object, pod: Object) -> Object:
    """Put back on a delegate what somebody has removed, and return it as it is then."""
    lost = delegate.lost_marks(chaperon, pod)
    if not lost:
        return pod

    body = objects.if_unchanged({"metadata": lost}, pod)
    return await client.patch(kinds.PODS, objects.name(pod), body, objects.namespace(pod))
