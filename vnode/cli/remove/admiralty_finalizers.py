"""Takes Admiralty's finalizers off the objects of a source that follow pods.

Admiralty puts them on what it copies. Once it is gone nobody takes them off, and whoever deletes
such an object waits for ever. The agent does so for Services and Ingresses; it has no right to
change ConfigMaps and Secrets, so that an administrator's credentials are needed for these.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli.remove.report import RemovalReport, counted
from vnode.following import write_back_patches
from vnode.kube.client import Client

COPIED: Final = tuple(k for k in kinds.FOLLOWING if k not in kinds.FOLLOWING_WHERE_POSSIBLE)
"""The kinds of which Admiralty makes copies."""


async def held(client: Client, kind: Kind) -> Objects:
    """List the objects of a kind that have a finalizer of Admiralty's."""
    found = await client.list(kind, label_selector=f"{keys.HAS_FINALIZER}=true")
    return [obj for obj in found if any(f.startswith(keys.PREFIX) for f in objects.finalizers(obj))]


async def release(client: Client, report: RemovalReport) -> None:
    """Take them off everywhere; what could not be changed is `left` in the report."""
    for kind in COPIED:
        done = 0
        try:
            for obj in await held(client, kind):
                done += await _release(client, kind, obj)
        except VnodeError as error:
            again = "; run this again" if isinstance(error, Conflict) else ""
            report.left.append(f"finalizers of Admiralty on {kind.plural}: {error}{again}")

        if done:
            report.say(f"took Admiralty's finalizers off {counted(done, kind.kind)}")


async def _release(client: Client, kind: Kind, obj: Object) -> bool:
    body = objects.if_unchanged(write_back_patches.restoration(obj), obj)
    try:
        await client.patch(kind, objects.name(obj), body, objects.namespace(obj))
    except NotFound:
        return False
    except Conflict:  # the agent, or its user, has changed it since
        newer = await client.get(kind, objects.name(obj), objects.namespace(obj))
        return bool(write_back_patches.restoration(newer)) and await _release(client, kind, newer)

    return True
